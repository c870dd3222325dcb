#pragma once

#include <cstdint>

namespace stratagem {

/// Dynamic loss scaling (Micikevicius et al., "Mixed precision training", 2018), with PyTorch's
/// numbers: starts at 65536, halves at an overflow, doubles after 2000 steps without one.
class LossScaler {
 public:
  LossScaler() = default;
  /// As an earlier one stood.
  LossScaler(double scale, std::int64_t good_steps) : scale_(scale), good_steps_(good_steps) {}

  double scale() const { return scale_; }
  /// Without an overflow, since the scale changed.
  std::int64_t good_steps() const { return good_steps_; }

  /// After every step; the update of an overflowed one must be skipped. False when the scale was at
  /// its minimum already: the gradient is not finite for another reason.
  [[nodiscard]] bool update(bool overflowed);

  static constexpr double first_scale = 65536;
  static constexpr double least_scale = 1;
  static constexpr double largest_scale = 16777216;
  static constexpr std::int64_t growth_interval = 2000;

 private:
  double scale_ = first_scale;
  std::int64_t good_steps_ = 0;
};

}  // namespace stratagem
