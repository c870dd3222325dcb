#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

namespace stratagem {

struct GradientPlaces;

/// How a square kernel moves over a map.
struct Window {
  std::int64_t stride = 1, padding = 0, groups = 1;
};

/// x [n, in, h, w], weight [out, in / groups, k, k] -> [n, out, h', w']: a convolution in training
/// or evaluation. On the CPU, where the result is a small map, libraries spend most of their time
/// on what does not depend on it: there it is made of products of the kernel's taps that meet the
/// map, and a depthwise one of sums of products of elements; not where `fused` is false. The weight
/// is parameter `parameter` of a block whose gradient may be wanted at a place; null: nowhere.
at::Tensor convolve(at::Tensor const& x, at::Tensor const& weight,
                    std::optional<at::Tensor> const& bias, Window const& window, bool fused,
                    GradientPlaces* places = nullptr, int parameter = 0);

/// Whether it is computed so; else by LibTorch.
bool is_of_small_maps(at::Tensor const& x, at::Tensor const& weight, Window const& window);

}  // namespace stratagem
