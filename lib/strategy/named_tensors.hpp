#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/hash.hpp"
#include "params/parameter_spec.hpp"

namespace stratagem {

/// Tensors on the CPU by torchvision's names, in model order.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Which whole tensors, by name, a rank is to have of those that are gathered.
using Wanted = std::function<bool(std::string const&)>;
inline bool all_tensors(std::string const& /*name*/) {
  return true;
}

/// Adds a contiguous copy of the parameter; the parts of one tensor are joined under its name.
void append(NamedTensors& tensors, ParameterSpec const& spec, at::Tensor const& parameter);

/// Its tensor's name, with the rows of a part: "classifier.0.weight[0:1024]".
std::string label_of(ParameterSpec const& spec);

/// What belongs to `spec` (a part of a tensor, perhaps) among whole tensors; undefined if nothing.
at::Tensor find(std::map<std::string, at::Tensor> const& tensors, ParameterSpec const& spec);

/// Names and bytes of contiguous CPU tensors, for fingerprints.
void add(Hash& hash, NamedTensors const& tensors);

}  // namespace stratagem
