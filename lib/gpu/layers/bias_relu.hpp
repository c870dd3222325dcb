#pragma once

#include "gpu/layers/maps.hpp"

namespace stratagem::gpu {

struct Device;

/// y = ReLU(y + bias), in place. bias: [channels] of the maps' type.
struct BiasForward {
  Maps maps;
  void* y;
  void const* bias;
};

/// Gradients of what bias was added to, and of the bias.
struct BiasBackward {
  Maps maps;
  void const *y, *of_y;  ///< y: the result
  void* of_x;
  void* of_bias;
  float* scratch;
};

/// On the compute stream of a GPU, or at once on the host, with the same bits. Maps are aligned to
/// a vector.
void bias_relu(BiasForward const& pass, Device const& device);
void bias_relu(BiasBackward const& pass, Device const& device);

/// What the kernels do, in their order: they are tested against it.
void bias_relu_on_host(BiasForward const& pass);
void bias_relu_on_host(BiasBackward const& pass);

}  // namespace stratagem::gpu
