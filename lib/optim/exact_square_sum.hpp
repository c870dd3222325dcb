#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace stratagem {

/// A sum of squares that does not depend on the order of its terms: every term is split into
/// integer halves of its mantissa and added to bins by exponent, which loses nothing (a long
/// accumulator; Kulisch, "Computer arithmetic and validity", 2013). Room for 2^36 terms.
class ExactSquareSum {
 public:
  void add(std::span<float const> values);
  /// The square of a double is rounded once before it is added.
  void add(std::span<double const> values);
  void add(ExactSquareSum const& other);

  /// All that the sum is: adding two sums' bins one by one adds the sums.
  std::span<std::int64_t> bins() { return bins_; }

  static constexpr std::int64_t bytes = 2 * 2048 * sizeof(std::int64_t);  ///< of bins()

  /// Not finite when a term was not, or overflowed.
  double value() const;

 private:
  void add_square(double square);

  static constexpr int exponents = 2048;
  std::array<std::int64_t, 2 * exponents> bins_{};  ///< high halves by exponent, then low halves
};

}  // namespace stratagem
