#include "model/exported/gradient_flow.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "model/exported/operator_names.hpp"
#include "model/exported/value_groups.hpp"

namespace stratagem {
namespace {

/// Whose results have no gradient, though they are floating and made from what needs one.
constexpr std::array<std::string_view, 11> ends{
    "detach",    "detach_copy", "zeros_like", "ones_like", "full_like", "empty_like",
    "rand_like", "new_zeros",   "new_ones",   "new_full",  "new_empty"};

bool passes_gradients(Instruction const& instruction) {
  auto const& node = instruction.node();
  return !node.without_gradient && !is_of(ends, node.base_name());
}

}  // namespace

/// By groups of values that share memory and a gradient: a write to one of them counts for all.
GradientFlow::GradientFlow(ExportedProgram const& program,
                           std::vector<Instruction> const& instructions) {
  ValueGroups groups(program.values.size());
  for (auto const& instruction : instructions) {
    if (!passes_gradients(instruction)) continue;
    for (auto input : instruction.aliased())
      for (auto output : instruction.node().outputs) groups.join(output, input);
  }
  auto const is_floating = [&](ValueId value) {
    return at::isFloatingType(program.value(value).type) ||
           at::isComplexType(program.value(value).type);
  };

  std::set<std::size_t> needing;
  for (auto const& state : program.state)
    if (state.kind == ExportedState::Kind::parameter && !state.frozen && is_floating(state.value))
      needing.insert(groups.of(state.value));
  auto const needs = [&](ValueId value) { return needing.contains(groups.of(value)); };
  for (auto const& instruction : instructions) {
    if (!passes_gradients(instruction) || std::ranges::none_of(instruction.inputs(), needs))
      continue;
    for (auto output : instruction.node().outputs)
      if (is_floating(output)) needing.insert(groups.of(output));
  }

  std::set<std::size_t> reached{groups.of(program.output)};
  for (auto i = instructions.size(); i-- > 0;) {
    auto const& instruction = instructions[i];
    auto const is_reached = [&](ValueId output) { return reached.contains(groups.of(output)); };
    if (!passes_gradients(instruction) ||
        std::ranges::none_of(instruction.node().outputs, is_reached))
      continue;
    for (auto input : instruction.inputs())
      if (needs(input)) reached.insert(groups.of(input));
  }

  for (std::size_t value = 0; value < program.values.size(); ++value)
    if (needs(static_cast<ValueId>(value))) needing_.insert(static_cast<ValueId>(value));
  for (auto const& state : program.state)
    if (state.kind == ExportedState::Kind::parameter && needs(state.value) &&
        reached.contains(groups.of(state.value)))
      trained_.insert(state.value);
}

}  // namespace stratagem
