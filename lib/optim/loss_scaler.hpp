#pragma once

#include <cstdint>

namespace stratagem {

/// Dynamic loss scaling (Micikevicius et al., "Mixed precision training", 2018), with PyTorch's
/// numbers: starts at 65536, halves at an overflow, doubles after 2000 steps without one.
class LossScaler {
 public:
  static constexpr double first_scale = 65536;

  /// All that the next step depends on.
  struct State {
    double scale = first_scale;
    double good_steps = 0;  ///< without an overflow, since the scale changed
  };
  State const& state() const { return state_; }
  State& state() { return state_; }
  double scale() const { return state_.scale; }

  /// After every step; the update of an overflowed one must be skipped. False when the scale was at
  /// its minimum already: the gradient is not finite for another reason.
  [[nodiscard]] bool update(bool overflowed);

  static constexpr double least_scale = 1;
  static constexpr double largest_scale = 16777216;
  static constexpr std::int64_t growth_interval = 2000;

 private:
  State state_;
};

}  // namespace stratagem
