#pragma once

#include "gpu/layers/elementary.hpp"

namespace stratagem {

/// What follows a layer, element by element.
enum class Activation { none, relu, silu };

// The same on host and device, each operation rounded by itself.

constexpr float sigmoid(float x) {
  return 1 / (1 + gpu::exponential(-x));
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
