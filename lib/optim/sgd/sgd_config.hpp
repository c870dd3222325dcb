#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keys/key.hpp"

namespace stratagem {

/// Stochastic gradient descent with momentum.
struct SgdConfig {
  static constexpr std::string_view name = "sgd";
  static constexpr std::string_view description = "stochastic gradient descent with momentum";
  static constexpr double lr = 0.01, weight_decay = 0;  ///< where they are not given
  static constexpr std::array kinds{"momentum"};        ///< of state that the rule may keep

  double momentum = 0.9;  ///< 0: none
  bool nesterov = false;

  /// What it keeps for each parameter.
  std::vector<std::string> state_kinds() const {
    if (momentum == 0) return {};
    return {kinds.begin(), kinds.end()};
  }
};

/// Of section `optimizer`, bound to `config`.
Keys keys_of(SgdConfig& config);
/// What contradicts another key, if anything.
std::optional<Contradiction> contradiction_in(SgdConfig const& config);

}  // namespace stratagem
