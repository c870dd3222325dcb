#pragma once

#include <cstdint>

namespace stratagem::gpu {

// Elementary functions that are the same on host and device, each operation rounded by itself; by
// the polynomials of expf and logf in Moshier's Cephes library.

/// e^x, at most e^88, within 2 units in the last place: 2^n e^r with |r| < 0.35.
constexpr float exponential(float x) {
  constexpr float rounding = 0x1.8p23F;  // what is added to it becomes an integer
  constexpr float ln2_high = 0x1.63p-1F, ln2_low = -0x1.bd0106p-13F;  // n ln2_high is exact
  if (x > 88) x = 88;
  if (x < -87) x = -87;
  float const n = (x * 0x1.715476p+0F + rounding) - rounding;
  float const r = (x - n * ln2_high) - n * ln2_low;
  float series = 1.9875691500e-4F;  // written out, so that loops around it are vectorised
  series = series * r + 1.3981999507e-3F;
  series = series * r + 8.3334519073e-3F;
  series = series * r + 4.1665795894e-2F;
  series = series * r + 1.6666665459e-1F;
  series = series * r + 5.0000001201e-1F;
  series = (series * (r * r) + r) + 1;
  auto const exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  return series * __builtin_bit_cast(float, exponent);
}

/// ln x of a positive normal number, within 2 units in the last place of the greater of the result
/// and 1: n ln 2 + ln(1 + r) with |r| < 0.42. NaN stays.
constexpr float logarithm(float x) {
  if (!(x > 0)) return __builtin_nanf("");
  auto const bits = __builtin_bit_cast(std::uint32_t, x);
  auto n = static_cast<std::int32_t>(bits >> 23) - 126;
  float m = __builtin_bit_cast(float, (bits & 0x7fffffU) | 0x3f000000U);  // in [0.5, 1)
  if (m < 0.70710678F) {
    m += m;
    --n;
  }
  float const r = m - 1, square = r * r;
  float series = 7.0376836292e-2F;
  for (float const next :
       {-1.1514610310e-1F, 1.1676998740e-1F, -1.2420140846e-1F, 1.4249322787e-1F, -1.6668057665e-1F,
        2.0000714765e-1F, -2.4999993993e-1F, 3.3333331174e-1F})
    series = series * r + next;
  auto const e = static_cast<float>(n);
  return (r + (series * r * square + e * -2.12194440e-4F - 0.5F * square)) + e * 0.693359375F;
}

}  // namespace stratagem::gpu
