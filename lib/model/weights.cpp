#include "model/weights.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_model.hpp"

namespace stratagem {
namespace {

/// "3 tensors missing: a, b, c"; empty if there are none.
void report(std::vector<std::string>& problems, std::vector<std::string> const& names,
            char const* what) {
  constexpr std::size_t most = 20;
  if (names.empty()) return;
  auto const shown = std::span(names).first(std::min(most, names.size()));
  auto text = str(names.size(), names.size() == 1 ? " tensor " : " tensors ", what, ": ",
                  join(shown, ", "));
  if (names.size() > most) text += ", ...";
  problems.push_back(std::move(text));
}

std::string describe(at::ScalarType type, at::IntArrayRef shape) {
  return stratagem::str(at::toString(type), " ", shape);
}

bool fits(StateTensor const& wanted, at::Tensor const& tensor) {
  return tensor.sizes() == at::IntArrayRef(wanted.shape) &&
         at::isFloatingType(tensor.scalar_type()) == at::isFloatingType(wanted.type);
}

}  // namespace

std::vector<StateTensor> state_of(Model const& model) {
  std::vector<StateTensor> state;
  for (auto const& block : model.blocks) {
    auto const& declaration = block->declaration();
    auto parameter = declaration.parameters().begin();
    auto buffer = declaration.buffers().begin();
    for (auto const& name : declaration.names()) {
      if (parameter == declaration.parameters().end() || parameter->name != name) {
        state.push_back({name, buffer->shape, buffer->type, false});
        ++buffer;
        continue;
      }
      if (parameter->row_begin == 0) {
        state.push_back({name, parameter->shape, at::kFloat, true});
        if (parameter->is_part()) state.back().shape[0] = parameter->total_rows;
      }
      ++parameter;
    }
  }
  return state;
}

TensorMap match_weights(Model const& model, TensorMap file, HeadWeights head,
                        std::string const& source) {
  std::vector<std::string> missing, unexpected, unfit;
  TensorMap matched;
  for (auto const& wanted : state_of(model)) {
    auto found = file.extract(wanted.name);
    if (head == HeadWeights::fresh && std::ranges::count(model.head, wanted.name) > 0) continue;
    if (found.empty()) {
      if (!wanted.name.ends_with(".num_batches_tracked")) missing.push_back(wanted.name);
    } else if (!fits(wanted, found.mapped())) {
      auto const& tensor = found.mapped();
      unfit.push_back(str(wanted.name, " (", describe(tensor.scalar_type(), tensor.sizes()),
                          " for ", describe(wanted.type, wanted.shape), ")"));
    } else {
      matched.insert(std::move(found));
    }
  }
  for (auto const& [name, _] : model.tied) file.erase(name);
  for (auto const& [name, tensor] : file) unexpected.push_back(name);

  std::vector<std::string> problems;
  report(problems, missing, "missing");
  report(problems, unexpected, "unexpected");
  report(problems, unfit, "of another shape or type");
  if (!problems.empty())
    throw Error(ExitCode::bad_data, str("weights file ", source, " is not of model ", model.name),
                join(problems, "; "),
                "use a file with torchvision's names for this model; model.head: fresh leaves out "
                "the classifier's last layer");
  return matched;
}

TensorMap read_weights(ModelConfig const& config, Model const& model) {
  auto tensors = config.file.empty() ? TensorMap() : exported_state(config.file);
  if (config.weights.empty()) return tensors;
  auto file = read_safetensors(config.weights);
  for (auto& [name, tensor] : match_weights(model, std::move(file), config.head, config.weights))
    tensors.insert_or_assign(name, std::move(tensor));
  return tensors;
}

}  // namespace stratagem
