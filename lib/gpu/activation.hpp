#pragma once

#include <cstdint>

namespace stratagem {

/// What follows a layer, element by element.
enum class Activation { none, relu, silu };

// The same on host and device, each operation rounded by itself.

/// e^x, at most e^88, within 2 units in the last place: 2^n e^r with |r| < 0.35, by the polynomial
/// of expf in Moshier's Cephes library.
constexpr float exponential(float x) {
  constexpr float rounding = 0x1.8p23F;  // what is added to it becomes an integer
  constexpr float ln2_high = 0x1.63p-1F, ln2_low = -0x1.bd0106p-13F;  // n ln2_high is exact
  if (x > 88) x = 88;
  if (x < -87) x = -87;
  float const n = (x * 0x1.715476p+0F + rounding) - rounding;
  float const r = (x - n * ln2_high) - n * ln2_low;
  float series = 1.9875691500e-4F;
  for (float const next :
       {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F})
    series = series * r + next;
  series = (series * (r * r) + r) + 1;
  auto const exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  return series * __builtin_bit_cast(float, exponent);
}

constexpr float sigmoid(float x) {
  return 1 / (1 + exponential(-x));
}

constexpr float activated(Activation activation, float x) {
  if (activation == Activation::relu) return x < 0 ? 0 : x;
  return activation == Activation::silu ? x * sigmoid(x) : x;
}

/// The gradient of x from that of activated(x).
constexpr float gradient_before(Activation activation, float x, float gradient) {
  if (activation == Activation::relu) return x > 0 ? gradient : 0;
  if (activation == Activation::none) return gradient;
  float const s = sigmoid(x);
  return gradient * (s * (1 + x * (1 - s)));
}

}  // namespace stratagem
