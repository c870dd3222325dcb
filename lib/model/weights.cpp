#include "model/weights.hpp"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "model/exported/exported_model.hpp"
#include "model/model_card.hpp"

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

/// Numbers of fewer bits are meant with scales of their own.
bool is_plain(at::ScalarType type) {
  return type == at::kDouble || type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

bool fits(StateTensor const& wanted, at::Tensor const& tensor) {
  if (tensor.sizes() != at::IntArrayRef(wanted.shape)) return false;
  auto const type = tensor.scalar_type();
  return at::isFloatingType(wanted.type) ? is_plain(type) : type == wanted.type || type == at::kInt;
}

/// What stands before the model's names in those of the file: "module."; empty if nothing.
std::string prefix_of(std::vector<std::string> const& in_file,
                      std::vector<std::string> const& missing) {
  if (missing.empty()) return {};
  for (auto const& name : in_file) {
    if (!name.ends_with(missing.front()) || name == missing.front()) continue;
    auto prefix = name.substr(0, name.size() - missing.front().size());
    auto const is_there = [&](std::string const& tensor) {
      return std::ranges::find(in_file, prefix + tensor) != in_file.end();
    };
    if (std::ranges::all_of(missing, is_there)) return prefix;
  }
  return {};
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

namespace {

/// The file's tensors under the names that the model declares.
TensorMap renamed(TensorMap file, Model const& model) {
  if (model.declared_name == nullptr) return file;
  TensorMap tensors;
  for (auto& [name, tensor] : file)
    if (auto declared = model.declared_name(name); !declared.empty())
      tensors.emplace(std::move(declared), std::move(tensor));
  return tensors;
}

/// Takes away further names of tensors; those whose values are not the tensor's are reported.
std::vector<std::string> take_tied(Model const& model, TensorMap& file, TensorMap const& matched) {
  std::vector<std::string> untied;
  for (auto const& [name, first] : model.tied) {
    auto const own = file.extract(name);
    auto const found = matched.find(first);
    if (!own.empty() && found != matched.end() && !own.mapped().equal(found->second))
      untied.push_back(name);
  }
  return untied;
}

bool is_transposed(at::Tensor const& tensor, StateTensor const& wanted) {
  return tensor.dim() == 2 && tensor.t().sizes() == at::IntArrayRef(wanted.shape);
}

}  // namespace

TensorMap match_weights(Model const& model, TensorMap file, HeadWeights head,
                        std::string const& source) {
  std::vector<std::string> missing, unexpected, unfit;
  TensorMap matched;
  std::vector<std::string> in_file;
  for (auto const& [name, tensor] : file) in_file.push_back(name);
  file = renamed(std::move(file), model);
  for (auto const& wanted : state_of(model)) {
    auto found = file.extract(wanted.name);
    if (head == HeadWeights::fresh && std::ranges::count(model.head, wanted.name) > 0) continue;
    if (found.empty()) {
      if (!wanted.name.ends_with(".num_batches_tracked")) missing.push_back(wanted.name);
    } else if (!fits(wanted, found.mapped())) {
      auto const& tensor = found.mapped();
      unfit.push_back(str(wanted.name, " (", describe(tensor.scalar_type(), tensor.sizes()),
                          " for ", describe(wanted.type, wanted.shape),
                          is_transposed(tensor, wanted) ? ", transposed)" : ")"));
    } else {
      if (found.mapped().scalar_type() == at::kInt) found.mapped() = found.mapped().to(wanted.type);
      matched.insert(std::move(found));
    }
  }
  auto const untied = take_tied(model, file, matched);
  for (auto const& [name, tensor] : file) unexpected.push_back(name);

  std::vector<std::string> problems;
  if (auto const prefix = prefix_of(in_file, missing); !prefix.empty())
    throw Error(ExitCode::bad_data,
                str("weights file ", source, " has \"", prefix, "\" before the names of model ",
                    model.name),
                str(prefix, missing.front(), " for ", missing.front()),
                str("take it off in Python: {name.removeprefix(\"", prefix,
                    "\"): tensor for name, tensor in weights.items()}"));
  report(problems, missing, "missing");
  report(problems, unexpected, "unexpected");
  report(problems, unfit, "of another shape or type");
  report(problems, untied, "unlike the tensor they are tied to");
  if (!problems.empty())
    throw Error(ExitCode::bad_data, str("weights file ", source, " is not of model ", model.name),
                join(problems, "; "),
                str("use a file with ", model.card.empty() ? "torchvision's" : "Hugging Face's",
                    " names for this model; model.head: fresh leaves out the classifier's last "
                    "layer"));
  return matched;
}

namespace {

constexpr char index_name[] = "model.safetensors.index.json";

/// In a folder, as Hugging Face's programs name it; a file is itself.
std::filesystem::path weights_in(std::filesystem::path const& path) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return path;
  for (auto const* name : {"model.safetensors", index_name})
    if (std::filesystem::exists(path / name, failed)) return path / name;
  throw Error(ExitCode::bad_data, "no weights in folder " + path.string(),
              str("it holds neither model.safetensors nor ", index_name), "check model.weights");
}

/// A safetensors file, or the index of several, which stand beside it.
TensorMap read_weights_files(std::filesystem::path const& path) {
  if (!path.native().ends_with(".index.json")) return read_safetensors(path);
  auto const index = nlohmann::json::parse(read_text(path, ExitCode::bad_data), nullptr,
                                           /*allow_exceptions=*/false);
  std::set<std::string> names;
  if (index.is_object() && index.contains("weight_map") && index["weight_map"].is_object())
    for (auto const& [_, name] : index["weight_map"].items())
      if (name.is_string()) names.insert(name.get<std::string>());
  if (names.empty())
    throw Error(ExitCode::bad_data, "not a usable index of weights files: " + path.string(),
                "it has no weight_map from tensors to files", "check model.weights");
  TensorMap tensors;
  for (auto const& name : names)
    tensors.merge(read_safetensors(path.parent_path() / std::filesystem::path(name).filename()));
  return tensors;
}

/// Of a batch norm, for evaluation.
bool is_statistic(std::string const& name) {
  return name.ends_with("running_mean") || name.ends_with("running_var");
}

/// In fp32, in which a run begins with it. Constants may be infinite, as those that mask attention
/// are.
bool is_finite(StateTensor const& of, at::Tensor const& tensor) {
  if (!tensor.is_floating_point()) return true;
  bool const may_be_infinite = !of.parameter && !is_statistic(of.name);
  auto const bad =
      may_be_infinite ? tensor.isnan() : tensor.to(at::kFloat).isfinite().logical_not();
  return !bad.any().item<bool>();
}

/// No loss would be finite, in training or in evaluation.
void require_finite(Model const& model, TensorMap const& tensors, std::string const& source) {
  std::vector<std::string> not_finite, negative;
  for (auto const& of : state_of(model)) {
    auto const found = tensors.find(of.name);
    if (found == tensors.end()) continue;
    if (!is_finite(of, found->second))
      not_finite.push_back(of.name);
    else if (of.name.ends_with("running_var") && found->second.lt(0).any().item<bool>())
      negative.push_back(of.name);
  }
  std::vector<std::string> problems;
  report(problems, not_finite, "not finite");
  report(problems, negative, "with negative variances");
  if (problems.empty()) return;
  throw Error(ExitCode::bad_data, str("no run can start from ", source), join(problems, "; "),
              "take weights from before the run that wrote them diverged");
}

}  // namespace

void write_weights(std::filesystem::path const& path, Model const& model,
                   std::vector<std::pair<std::string, at::Tensor>> const& tensors) {
  write_safetensors(path, tensors, weights_metadata());
  if (!model.card.empty() && path.filename() == "model.safetensors")
    replace_file(path.parent_path() / "config.json", model.card);
}

TensorMap read_weights(ModelConfig const& config, Model const& model) {
  auto tensors = config.file.empty() ? TensorMap() : exported_state(config.file);
  if (!config.weights.empty()) {
    auto const path = weights_in(config.weights);
    compare_card(model, path.parent_path());
    auto file = read_weights_files(path);
    for (auto& [name, tensor] : match_weights(model, std::move(file), config.head, config.weights))
      tensors.insert_or_assign(name, std::move(tensor));
  }
  require_finite(model, tensors, config.weights.empty() ? config.file : config.weights);
  return tensors;
}

}  // namespace stratagem
