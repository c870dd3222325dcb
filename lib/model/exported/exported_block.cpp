#include "model/exported/exported_block.hpp"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

bool is_norm(Instruction const& instruction) {
  auto const kind = instruction.kind();
  return kind == Instruction::Kind::batch_norm || kind == Instruction::Kind::norm;
}

bool is_statistic(Instruction const& instruction, ValueId value) {
  return is_norm(instruction) && (instruction.tensor("running_mean") == value ||
                                  instruction.tensor("running_var") == value);
}

}  // namespace

ExportedBlock::ExportedBlock(std::shared_ptr<ExportedGraph const> graph, BlockRange const& range,
                             std::set<ValueId> const& unused)
    : Block(range.name), graph_(std::move(graph)), range_(range) {
  std::set<ValueId> used;
  for (int i = range_.begin; i < range_.end; ++i) {
    auto const& inputs = graph_->flow.instructions()[at(i)].inputs();
    used.insert(inputs.begin(), inputs.end());
  }
  declare_state(used, unused);
  for (std::size_t i = 0; i < graph_->constants.size(); ++i)
    if (used.contains(graph_->constants[i].value)) constants_.push_back(i);
  find_releases();
}

/// In the order of the state_dict. Norms keep fp32 parameters and statistics. Parameters that get
/// no gradient are buffers: nobody updates, sends or averages them.
void ExportedBlock::declare_state(std::set<ValueId> const& used, std::set<ValueId> const& unused) {
  std::set<ValueId> elsewhere;   // used by other operators than norms
  std::set<ValueId> statistics;  // running, of norms
  for (int i = range_.begin; i < range_.end; ++i) {
    auto const& instruction = graph_->flow.instructions()[at(i)];
    for (auto input : instruction.inputs()) {
      if (!is_norm(instruction)) elsewhere.insert(input);
      if (is_statistic(instruction, input)) statistics.insert(input);
    }
    if (instruction.kind() == Instruction::Kind::batch_norm && instruction.flag("training") == true)
      declare_.mix_samples();
  }
  auto const& trained = graph_->flow.gradients().trained();
  auto const updated = graph_->flow.updated();
  for (auto const& state : graph_->program.state) {
    if (state.kind == ExportedState::Kind::constant) continue;
    if (!used.contains(state.value) && !unused.contains(state.value)) continue;
    auto const& value = graph_->program.value(state.value);
    auto const shape = value.fixed_shape();
    bool const floating = at::isFloatingType(value.type);
    auto const type = value.type == graph_->program.type ? at::kFloat : value.type;
    bool const of_norms = used.contains(state.value) && !elsewhere.contains(state.value);
    if (trained.contains(state.value)) {
      int const index = declare_.parameter({state.name, shape, Initialiser::constant(0), of_norms});
      parameters_.push_back({state.value, index, true});
      continue;
    }
    bool const changes = updated.contains(state.value);
    int const index = declare_.buffer({state.name, shape, type, 0});
    bool const parameter = state.kind == ExportedState::Kind::parameter;
    bool const as_given =
        statistics.contains(state.value) || changes || !floating || (parameter && of_norms);
    buffers_.push_back({state.value, index, as_given});
  }
}

void ExportedBlock::find_releases() {
  std::map<ValueId, int> last;
  std::set<ValueId> state;
  for (auto const& of : graph_->program.state) state.insert(of.value);
  for (int i = range_.begin; i < range_.end; ++i) {
    auto const& instruction = graph_->flow.instructions()[at(i)];
    for (auto output : instruction.node().outputs) last[output] = i;
    for (auto input : instruction.inputs()) last[input] = i;
  }
  releases_.resize(at(range_.end - range_.begin));
  for (auto const& [value, index] : last)
    if (value != range_.output && !state.contains(value))
      releases_[at(index - range_.begin)].push_back(value);
}

/// That of the parameters, apart from norms': the input may be tokens, or fp32 in a pass of 16 bit.
at::ScalarType ExportedBlock::type_of_pass(at::Tensor const& x, Frame const& frame) const {
  auto const& specs = declare_.parameters();
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (!specs[i].keep_fp32) return frame.parameters[i].scalar_type();
  return at::isFloatingType(x.scalar_type()) ? x.scalar_type() : at::kFloat;
}

void ExportedBlock::load(Registers& registers, Frame const& frame, PassContext const& pass) const {
  auto const converted = [&](at::Tensor const& tensor) {
    return at::isFloatingType(tensor.scalar_type()) ? tensor.to(pass.device, pass.type)
                                                    : tensor.to(pass.device);
  };
  for (auto const& home : parameters_) registers[at(home.value)] = frame.parameters[at(home.index)];
  for (auto const& home : buffers_) {
    auto const& buffer = frame.buffers[at(home.index)];
    registers[at(home.value)] = home.as_given ? buffer : converted(buffer);
  }
  for (auto index : constants_) {
    auto const& [value, tensor, literal] = graph_->constants[index];
    bool const wide =
        literal && tensor.scalar_type() == at::kFloat && c10::elementSize(pass.type) == 2;
    registers[at(value)] = wide ? tensor.to(pass.device) : converted(tensor);
  }
}

/// Evaluations may have more samples than the graph takes at once.
at::Tensor ExportedBlock::forward(at::Tensor const& x, Frame const& frame) const {
  auto const most = graph_->program.most_samples;
  if (frame.context.training || most == 0 || x.size(0) <= most) return run(x, frame);
  std::vector<at::Tensor> outputs;
  for (auto const& part : x.split(most)) outputs.push_back(run(part, frame));
  return at::cat(outputs);
}

at::Tensor ExportedBlock::run(at::Tensor const& x, Frame const& frame) const {
  PassContext const pass{frame.context, x.size(0), type_of_pass(x, frame), x.device()};
  Registers registers(graph_->program.values.size());
  load(registers, frame, pass);
  bool const overwrites = range_.begin == 0 && graph_->flow.writes_input();
  registers[at(range_.input)] = overwrites ? x.clone() : x;
  for (int i = range_.begin; i < range_.end; ++i) {
    graph_->flow.instructions()[at(i)].run(registers, pass);
    for (auto value : releases_[at(i - range_.begin)]) registers[at(value)] = {};
  }
  return registers[at(range_.output)].toTensor();
}

}  // namespace stratagem
