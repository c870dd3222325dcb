#pragma once

#include "gpu/layers/maps.hpp"

namespace stratagem::gpu {

struct Device;

/// y = weight (x - mean) / sqrt(variance + eps) + bias, by rows (Ba, Kiros and Hinton, "Layer
/// normalization", 2016). weight, bias: fp32 [channels]; mean, inverse_deviation: fp32 [rows].
struct LayerNormForward {
  Maps maps;
  void const* x;
  void* y;
  float const *weight, *bias;
  float *mean, *inverse_deviation;  ///< for the backward pass
  float eps;
};

struct LayerNormBackward {
  Maps maps;
  void const *x, *of_y;
  void* of_x;
  float const *weight, *mean, *inverse_deviation;
  float *of_weight, *of_bias;
  float* scratch;
};

/// On the compute stream of a GPU, or at once on the host, with the same bits. Maps are aligned to
/// a vector.
void layer_norm(LayerNormForward const& pass, Device const& device);
void layer_norm(LayerNormBackward const& pass, Device const& device);

/// What the kernels do, in their order: they are tested against it.
void layer_norm_on_host(LayerNormForward const& pass);
void layer_norm_on_host(LayerNormBackward const& pass);

}  // namespace stratagem::gpu
