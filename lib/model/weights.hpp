#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/model.hpp"
#include "model/safetensors.hpp"

namespace stratagem {

/// A whole tensor of a model's state: a parameter, or a buffer.
struct StateTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  at::ScalarType type;
  bool parameter;
};

/// The model's state in the order of torchvision's state_dict; parts of a tensor are joined.
std::vector<StateTensor> state_of(Model const& model);

/// The tensors of `file` that the model starts from. Floating types may differ from the model's. As
/// in PyTorch, older files without `num_batches_tracked` are accepted; further names of tied
/// parameters may be there with the same values. With HeadWeights::fresh, the head's tensors are
/// ignored. Error(bad_data) with all tensors that are missing, unexpected, or of another shape or
/// type; the message calls the file `source`.
TensorMap match_weights(Model const& model, TensorMap file, HeadWeights head,
                        std::string const& source);

/// What the model starts from: the tensors of an exported model, replaced by those of the weights
/// file that `config` names, or of the files that an index (*.index.json) names, or of the folder
/// that holds one of them. Empty where there is neither. Errors are those of exported_state(),
/// compare_card(), read_safetensors() and match_weights(); Error(bad_data) with the parameters that
/// are not finite.
TensorMap read_weights(ModelConfig const& config, Model const& model);

/// Writes the model's state, in this order. Beside a file named model.safetensors, a model that has
/// a card gets it as config.json: then the folder is what `from_pretrained` of Hugging Face's
/// transformers takes. Error(io).
void write_weights(std::filesystem::path const& path, Model const& model,
                   std::vector<std::pair<std::string, at::Tensor>> const& tensors);

}  // namespace stratagem
