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

  /// `weights`: the sum of them all.
  FixedPoint(std::int64_t weights, double largest);

  int bits() const { return bits_; }
  /// f.
  int exponent() const { return exponent_; }
  /// 2^-f.
  double unit() const;
  /// The largest that is not clipped.
  double range() const { return unit() * static_cast<double>(limit()); }

  /// sum += weight round(2^f change). `codes`: room for the integers; `change` is spoilt. Returns
  /// how many elements were clipped.
  std::int64_t add(at::Tensor const& change, std::int64_t weight, at::Tensor const& codes,
                   at::Tensor const& sum) const;
  /// mean <- 2^-f sum / weights.
  void mean_of(at::Tensor const& sum, at::Tensor const& mean) const;

 private:
  std::int64_t limit() const { return (std::int64_t{1} << (bits_ - 1)) - 1; }

  std::int64_t weights_;
  int bits_, exponent_;
};

}  // namespace stratagem
