#include "optim/exact_square_sum.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace stratagem {
namespace {

constexpr int mantissa_bits = 52, low_bits = 26;
constexpr int bias = 1023;

}  // namespace

void ExactSquareSum::add_square(double square) {
  auto const bits = std::bit_cast<std::uint64_t>(square);
  auto const exponent = bits >> mantissa_bits;  // the sign is 0
  auto mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  if (exponent > 0) mantissa |= std::uint64_t{1} << mantissa_bits;
  bins_[exponent & 2047] += static_cast<std::int64_t>(mantissa >> low_bits);
  bins_[exponents + (exponent & 2047)] +=
      static_cast<std::int64_t>(mantissa & ((std::uint64_t{1} << low_bits) - 1));
}

void ExactSquareSum::add(std::span<float const> values) {
  for (float const value : values)
    add_square(static_cast<double>(value) * static_cast<double>(value));
}

void ExactSquareSum::add(std::span<double const> values) {
  for (double const value : values) add_square(value * value);
}

void ExactSquareSum::add(ExactSquareSum const& other) {
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
}

double ExactSquareSum::value() const {
  if (bins_[exponents - 1] != 0 || bins_[2 * exponents - 1] != 0)
    return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;  // from the smallest terms to the largest
  for (int e = 0; e < exponents - 1; ++e) {
    int const scale = (e > 0 ? e : 1) - bias - mantissa_bits;
    auto const at = static_cast<std::size_t>(e);
    sum += std::ldexp(static_cast<double>(bins_[exponents + at]), scale);
    sum += std::ldexp(static_cast<double>(bins_[at]), scale + low_bits);
  }
  return sum;
}

}  // namespace stratagem
