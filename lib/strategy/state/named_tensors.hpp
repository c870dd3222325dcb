#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "params/parameter_spec.hpp"

namespace stratagem {

class Communicator;

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

/// Digest of names and bytes of contiguous CPU tensors, in whatever order they come.
std::string digest_of(NamedTensors const& tensors);
/// Of all ranks' tensors, each of which one rank has: on every rank the same as if one had them
/// all. Collective.
std::string digest_of(Communicator& communicator, NamedTensors const& own);

}  // namespace stratagem
