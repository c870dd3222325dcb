#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keys/key.hpp"

namespace stratagem {

/// Adam with decoupled weight decay.
struct AdamwConfig {
  static constexpr std::string_view name = "adamw";
  static constexpr std::string_view description = "Adam with decoupled weight decay";
  static constexpr double lr = 0.001, weight_decay = 0.01;  ///< where they are not given
  static constexpr std::array kinds{"exp_avg", "exp_avg_sq"};

  double beta1 = 0.9;    ///< of the running mean of gradients
  double beta2 = 0.999;  ///< of that of their squares
  double eps = 1e-8;     ///< added to the root of the latter

  /// What it keeps for each parameter.
  std::vector<std::string> state_kinds() const { return {kinds.begin(), kinds.end()}; }
};

/// Of section `optimizer`, bound to `config`.
Keys keys_of(AdamwConfig& config);
/// Nothing contradicts another key.
std::optional<Contradiction> contradiction_in(AdamwConfig const& config);

}  // namespace stratagem
