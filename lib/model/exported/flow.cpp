#include "model/exported/flow.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

Flow::Flow(ExportedProgram const& program)
    : program_(program), groups_(program.values.size()), state_of_(program.values.size()) {
  for (auto const& node : program.nodes) instructions_.emplace_back(program, node);
  find_groups();
  drop_unneeded();
  find_writes();
  find_mask_scales();
  gradients_ = GradientFlow(program_, instructions_);
  check_updates();
}

void Flow::find_groups() {
  for (auto const& instruction : instructions_)
    for (auto input : instruction.aliased())
      for (auto output : instruction.node().outputs) groups_.join(output, input);
  for (auto const& state : program_.state)
    if (state.kind != ExportedState::Kind::constant) state_of_[group(state.value)] = &state;
}

/// In-place operators count where the memory they write is needed, or is a buffer; counters of a
/// batch norm where the norm is.
void Flow::drop_unneeded() {
  std::set<std::size_t> needed{group(program_.output)};
  std::set<std::string> modules, normed;
  for (auto const& instruction : instructions_)
    if (instruction.kind() == Instruction::Kind::batch_norm ||
        instruction.kind() == Instruction::Kind::norm)
      normed.insert(instruction.node().module);
  auto const counts = [&](Instruction const& instruction) {
    return instruction.writes() && is_counter(state_of_[group(instruction.inputs().front())]) &&
           normed.contains(instruction.node().module);
  };
  auto const is_needed = [&](Instruction const& instruction) {
    if (instruction.writes() && is_buffer(state_of_[group(instruction.inputs().front())]))
      return true;
    return std::ranges::any_of(instruction.node().outputs,
                               [&](ValueId output) { return needed.contains(group(output)); });
  };
  std::vector<bool> keeps(instructions_.size(), false);
  for (auto i = instructions_.size(); i-- > 0;) {
    auto const& instruction = instructions_[i];
    if (counts(instruction) || !is_needed(instruction)) continue;
    keeps[i] = true;
    modules.insert(instruction.node().module);
    for (auto input : instruction.inputs()) needed.insert(group(input));
  }
  std::vector<Instruction> kept;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    bool const counter = counts(instructions_[i]);
    if (counter && !modules.contains(instructions_[i].node().module)) continue;
    if (counter) instructions_[i].become(Instruction::Kind::count_batches);
    if (counter || keeps[i]) kept.push_back(std::move(instructions_[i]));
  }
  instructions_ = std::move(kept);
}

bool Flow::is_buffer(ExportedState const* state) const {
  return state != nullptr && state->kind == ExportedState::Kind::buffer;
}

/// Whether a batch norm may count with it.
bool Flow::is_counter(ExportedState const* state) const {
  return is_buffer(state) && !at::isFloatingType(program_.value(state->value).type);
}

void Flow::find_writes() {
  last_write_.assign(program_.values.size(), -1);
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    auto& instruction = instructions_[i];
    if (!instruction.writes()) continue;
    auto const target = instruction.inputs().front();
    last_write_[group(target)] = static_cast<int>(i);
    auto const* state = state_of_[group(target)];
    if (state == nullptr || instruction.kind() == Instruction::Kind::count_batches) continue;
    if (!is_buffer(state))
      refuse(program_, instruction.node(), str("it writes parameter ", state->name),
             "compute with a copy: only buffers may change in a pass");
    if (instruction.kind() == Instruction::Kind::keep_mask)
      refuse(program_, instruction.node(), str("it draws random numbers into ", state->name),
             "draw them into a new tensor, as torch.empty_like() makes");
    instruction.become(Instruction::Kind::update);
  }
  for (auto const& state : program_.state)
    if (state.kind == ExportedState::Kind::constant && last_write_[group(state.value)] >= 0)
      refuse(program_, instructions_[at(last_write_[group(state.value)])].node(),
             str("it writes ", state.name, ", which is not in the state_dict"),
             "register it as a persistent buffer");
}

std::set<ValueId> Flow::updated() const {
  std::set<ValueId> found;
  for (auto const& instruction : instructions_)
    if (instruction.kind() == Instruction::Kind::update)
      found.insert(state_of_[group(instruction.inputs().front())]->value);
  return found;
}

ExportedState const* Flow::read_back() const {
  using Kind = Instruction::Kind;
  std::set<std::size_t> needed{group(program_.output)};
  for (auto i = instructions_.size(); i-- > 0;) {
    auto const& instruction = instructions_[i];
    bool const updates =
        instruction.kind() == Kind::update || instruction.kind() == Kind::count_batches;
    auto const is_needed = [&](ValueId output) { return needed.contains(group(output)); };
    if (updates || std::ranges::none_of(instruction.node().outputs, is_needed)) continue;
    for (auto input : instruction.inputs()) needed.insert(group(input));
  }
  for (auto const& instruction : instructions_) {
    if (instruction.kind() != Kind::update) continue;
    auto const written = group(instruction.inputs().front());
    if (needed.contains(written)) return state_of_[written];
  }
  return nullptr;
}

/// What reaches a buffer would stay in autograd's graph from one step to the next.
void Flow::check_updates() const {
  for (auto const& instruction : instructions_) {
    if (instruction.kind() != Instruction::Kind::update || instruction.node().without_gradient)
      continue;
    for (auto input : instruction.inputs())
      if (gradients_.needs(input))
        refuse(program_, instruction.node(),
               str("it writes ", state_of_[group(instruction.inputs().front())]->name,
                   " with what needs a gradient"),
               "write what detach() returns, or under torch.no_grad()");
  }
}

/// Stochastic depth divides its mask by the probability that a sample is kept.
void Flow::find_mask_scales() {
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (instructions_[i].kind() != Instruction::Kind::keep_mask) continue;
    auto const mask = instructions_[i].node().outputs.front();
    auto const uses = [&](Instruction const& other) {
      auto const& inputs = other.inputs();
      return std::ranges::find(inputs, mask) != inputs.end();
    };
    auto const next = std::find_if(instructions_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   instructions_.end(), uses);
    bool const scales = next != instructions_.end() &&
                        next->node().target.starts_with("aten::div") &&
                        next->inputs() == std::vector{mask} &&
                        next->number("other") == instructions_[i].number("p");
    if (!scales)
      refuse(
          program_, instructions_[i].node(),
          "a mask of bernoulli_ must be divided by its probability next, as stochastic depth does");
    next->become(Instruction::Kind::mask_scale);
  }
}

std::vector<Flow::Cut> Flow::cuts() const {
  auto const count = static_cast<int>(instructions_.size());
  std::vector<int> last_use(program_.values.size(), -1);
  std::vector<int> first_use(program_.values.size(), count);
  for (int i = 0; i < count; ++i) {
    for (auto input : instructions_[at(i)].inputs()) {
      last_use[at(input)] = i;
      first_use[at(input)] = std::min(first_use[at(input)], i);
    }
  }
  last_use[at(program_.output)] = count;

  std::vector<int> forbidden(at(count) + 1, 0);  // by how many values; as differences
  for (auto const& of : program_.state) {
    if (of.kind == ExportedState::Kind::constant || last_use[at(of.value)] < 0) continue;
    ++forbidden[at(first_use[at(of.value)])];
    --forbidden[at(last_use[at(of.value)])];
  }
  std::vector<std::vector<ValueId>> ending(at(count) + 1);
  for (std::size_t v = 0; v < last_use.size(); ++v)
    if (last_use[v] >= 0) ending[at(last_use[v])].push_back(static_cast<ValueId>(v));

  std::set<ValueId> alive{program_.input};
  std::vector<Cut> found;
  int conflicts = 0;
  for (int i = 0; i + 1 < count; ++i) {
    for (auto output : instructions_[at(i)].node().outputs)
      if (last_use[at(output)] > i) alive.insert(output);
    for (auto value : ending[at(i)]) alive.erase(value);
    conflicts += forbidden[at(i)];
    if (conflicts > 0 || alive.size() != 1) continue;
    auto const value = *alive.begin();
    auto const& of = program_.value(value);
    bool const by_sample = !of.shape.empty() && of.shape.front().is_samples();
    bool const fit = value != program_.input && at::isFloatingType(of.type) && by_sample &&
                     last_write_[group(value)] <= i && state_of_[group(value)] == nullptr;
    if (fit) found.push_back({i, value});
  }
  return found;
}

}  // namespace stratagem
