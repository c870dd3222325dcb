#include "model/exported/stride_dependence.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "model/exported/operator_names.hpp"
#include "model/exported/value_groups.hpp"

namespace stratagem {
namespace {

constexpr std::array<std::string_view, 8> by_strides{
    "as_strided", "as_strided_copy", "as_strided_scatter", "_reshape_alias", "resize", "resize_as",
    "set",        "unfold_backward"};

bool reads_strides(ExportedNode const& node) {
  return is_of(by_strides, node.base_name()) || node.target == "aten::view.dtype";
}

/// When each value is made and last read.
struct Life {
  int made = -1, read = -1;
};

std::vector<Life> lives_of(Flow const& flow) {
  auto const& program = flow.program();
  auto const& instructions = flow.instructions();
  std::vector<Life> lives(program.values.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    for (auto output : instructions[i].node().outputs)
      lives[static_cast<std::size_t>(output)].made = static_cast<int>(i);
    for (auto input : instructions[i].inputs())
      lives[static_cast<std::size_t>(input)].read = static_cast<int>(i);
  }
  lives[static_cast<std::size_t>(program.output)].read = static_cast<int>(instructions.size());
  return lives;
}

/// Values that share memory whatever their strides are.
ValueGroups sure_groups(Flow const& flow) {
  ValueGroups groups(flow.program().values.size());
  for (auto const& instruction : flow.instructions()) {
    if (instruction.copies_by_strides()) continue;
    for (auto input : instruction.aliased())
      for (auto output : instruction.node().outputs) groups.join(output, input);
  }
  return groups;
}

}  // namespace

std::optional<StrideDependence> stride_dependence(Flow const& flow) {
  constexpr std::size_t least_dimensions = 3;  // fewer have no format
  auto const& instructions = flow.instructions();
  for (auto const& instruction : instructions)
    if (reads_strides(instruction.node()))
      return StrideDependence{&instruction.node(), "reads strides"};
  auto const lives = lives_of(flow);
  auto const sure = sure_groups(flow);
  auto const values = static_cast<ValueId>(flow.program().values.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (!instructions[i].writes()) continue;
    auto const target = instructions[i].inputs().front();
    bool lost = false, formatted = false;
    for (ValueId other = 0; other < values; ++other) {
      if (!flow.may_alias(target, other)) continue;
      auto const& life = lives[static_cast<std::size_t>(other)];
      auto const at = static_cast<int>(i);
      formatted = formatted || flow.program().value(other).shape.size() >= least_dimensions;
      lost = lost || (sure.of(other) != sure.of(target) && life.made < at && life.read > at);
    }
    if (lost && formatted)
      return StrideDependence{&instructions[i].node(),
                              "writes through a view that channels_last would make a copy"};
  }
  return std::nullopt;
}

void check_strides(ExportedProgram const& program, StrideDependence const& found) {
  auto const check = [&](std::string const& name, ValueId value) {
    if (program.value(value).contiguous) return;
    refuse(program, *found.node,
           str("it ", found.why, ", and in Python ", name, " was not contiguous"),
           "export the model with contiguous parameters and input");
  };
  check("the input", program.input);
  for (auto const& state : program.state) check(state.name, state.value);
}

}  // namespace stratagem
