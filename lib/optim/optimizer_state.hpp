#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "optim/optim_config.hpp"

namespace stratagem {

/// What an optimizer keeps for each parameter, by kind: 1-D tensors with an element for each
/// element that it updates. Checkpoints name these kinds.
using OptimizerState = std::vector<std::pair<std::string, at::Tensor>>;

/// All kinds that there are.
inline constexpr std::array known_state_kinds{"momentum"};

/// The kinds that an optimizer of this configuration keeps.
inline std::vector<std::string> state_kinds(OptimizerConfig const& config) {
  if (config.momentum == 0) return {};
  return {known_state_kinds[0]};
}

}  // namespace stratagem
