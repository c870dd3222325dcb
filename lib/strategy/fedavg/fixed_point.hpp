#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stratagem {

/// Changes d as integers round(2^f d), so that their weighted sum is exact in 32 bits and does not
/// depend on the order in which it is made. Weights that add up to n leave a change
/// 32 - ceil(log2 n) bits with its sign; f is the largest with which `largest` still fits.
class FixedPoint {
 public:
  static constexpr int least_bits = 8;
  static constexpr int most_bits = 25;  ///< as many as fp32 holds exactly

  /// `weights`: the sum of those that may come.
  FixedPoint(std::int64_t weights, double largest);

  int bits() const { return bits_; }
  /// f.
  int exponent() const { return exponent_; }
  /// 2^-f.
  double unit() const;
  /// The largest that is not clipped.
  double range() const { return unit() * static_cast<double>(limit()); }

  /// codes <- weight round(2^f change), int32; `change` is spoilt. Returns how many elements were
  /// clipped.
  std::int64_t code(at::Tensor const& change, std::int64_t weight, at::Tensor const& codes) const;
  /// mean <- 2^-f sum / weights. `weights`: of those in the sum.
  void mean_of(at::Tensor const& sum, std::int64_t weights, at::Tensor const& mean) const;

 private:
  std::int64_t limit() const { return (std::int64_t{1} << (bits_ - 1)) - 1; }

  int bits_, exponent_;
};

}  // namespace stratagem
