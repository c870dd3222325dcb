#include "model/exported/file/lifted_parameters.hpp"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/exported/file/state_records.hpp"

namespace stratagem {
namespace {

using Kind = ExportedState::Kind;

std::set<ValueId> used_values(ExportedProgram const& program) {
  std::set<ValueId> used;
  for (auto const& node : program.nodes)
    for (auto const& [_, value] : node.arguments) {
      if (auto const* tensor = std::get_if<ExportedArgument::Tensor>(&value))
        used.insert(tensor->value);
      if (auto const* tensors = std::get_if<ExportedArgument::Tensors>(&value))
        used.insert(tensors->values.begin(), tensors->values.end());
    }
  return used;
}

/// One number, over and over.
bool says_little(at::Tensor const& values) {
  return values.numel() < 2 || values.eq(values.flatten()[0]).all().item<bool>();
}

}  // namespace

void restore_lifted_parameters(ProgramArchive const& archive, ExportedProgram& program) {
  auto const used = used_values(program);
  std::map<ValueId, ValueId> parameters;  // of constants
  std::map<ValueId, std::string> claimed;
  for (auto const& parameter : program.state) {
    if (parameter.kind != Kind::parameter || used.contains(parameter.value)) continue;
    auto const& value = program.value(parameter.value);
    for (auto const& constant : program.state) {
      auto const& other = program.value(constant.value);
      if (constant.kind != Kind::constant || !used.contains(constant.value) ||
          other.type != value.type || other.shape != value.shape)
        continue;
      auto const values = read_state(archive, program, parameter);
      if (!values.equal(read_state(archive, program, constant))) continue;
      bool const one =
          !says_little(values) && parameters.emplace(constant.value, parameter.value).second;
      if (!one || std::ranges::count(claimed, parameter.name,
                                     &std::pair<ValueId const, std::string>::second) > 0)
        archive.refuse(
            str("nothing uses parameter ", parameter.name, ", and constant ", constant.name,
                " has its values: forward() may reach it through a list, which "
                "torch.export takes for a constant"),
            "keep parameters in torch.nn.ParameterList or ParameterDict");
      claimed.emplace(constant.value, parameter.name);
    }
  }
  std::erase_if(program.state,
                [&](ExportedState const& state) { return parameters.contains(state.value); });
  program.replace(parameters);
}

}  // namespace stratagem
