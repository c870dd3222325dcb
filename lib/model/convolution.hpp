#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

namespace stratagem {

struct GradientPlaces;

/// Which parameters of a block a convolution has, and where their gradients may be wanted.
struct OfBlock {
  GradientPlaces* places = nullptr;
  std::int64_t weight = 0, bias = -1;
};

/// How a square kernel moves over a map.
struct Window {
  std::int64_t stride = 1, padding = 0, groups = 1;
};

/// x [n, in, h, w], weight [out, in / groups, k, k] -> [n, out, h', w']: a convolution in training
/// or evaluation. On the CPU, where the result is a small map, libraries spend most of their time
/// on what does not depend on it: there it is made of products of the kernel's taps that meet the
/// map, and a depthwise one of sums of products of elements; not where `fused` is false. While a
/// GPU's work is kept as a graph, gradients of parameters are computed beside that of x.
at::Tensor convolve(at::Tensor const& x, at::Tensor const& weight,
                    std::optional<at::Tensor> const& bias, Window const& window, bool fused,
                    OfBlock const& of = {});

/// What observers of operators (at::RecordFunction) see of one that is computed so.
inline constexpr char const* small_maps_convolution = "stratagem::small_maps_convolution";

/// Whether it is computed so; else by LibTorch.
bool is_of_small_maps(at::Tensor const& x, at::Tensor const& weight, Window const& window);

}  // namespace stratagem
