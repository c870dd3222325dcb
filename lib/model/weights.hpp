#pragma once

#include <string>
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

/// The model's state in the order of torchvision's state_dict, the parts of a tensor as one.
std::vector<StateTensor> state_of(Model const& model);

/// The tensors of `file` that the model starts from. Floating types may differ from the model's. As
/// in PyTorch, files from before `num_batches_tracked` are good without; with HeadWeights::fresh
/// the head's tensors are left out. Error(bad_data) naming all that are missing, unexpected or of
/// another shape or type; `source` is what it calls the file.
TensorMap match_weights(Model const& model, TensorMap file, HeadWeights head,
                        std::string const& source);

/// Of the file that `config` names, matched to the model; empty where it names none. Errors as
/// those of read_safetensors() and match_weights().
TensorMap read_weights(ModelConfig const& config, Model const& model);

}  // namespace stratagem
