#pragma once

#include "gpu/layers/activation.hpp"
#include "gpu/layers/maps.hpp"

namespace stratagem::gpu {

struct Device;

/// y = activation(weight (x - mean) / sqrt(variance + eps) + bias + added), by columns (Ioffe and
/// Szegedy, "Batch normalization", 2015). All but maps is fp32 [channels].
struct NormForward {
  Maps maps;
  void const *x, *added;  ///< added: may be null
  void* y;
  float const *weight, *bias;
  float *running_mean, *running_var;  ///< moved towards the batch's by `momentum`
  float *mean, *inverse_deviation;    ///< of the batch, for the backward pass
  float* scratch;
  float eps, momentum;
  Activation activation;
};

/// Its gradients. y is read only after an addition and ReLU: there it tells what ReLU let through.
/// SiLU does not follow an addition.
struct NormBackward {
  Maps maps;
  void const *x, *y, *of_y;
  void *of_x, *of_added;  ///< of_added: null where nothing was added
  float const *weight, *bias, *mean, *inverse_deviation;
  float *of_weight, *of_bias;
  float* scratch;
  Activation activation;
};

/// On the compute stream of a GPU, or at once on the host, with the same bits. Maps are aligned to
/// a vector.
void batch_norm(NormForward const& pass, Device const& device);
void batch_norm(NormBackward const& pass, Device const& device);

/// What the kernels do, in their order: they are tested against it.
void batch_norm_on_host(NormForward const& pass);
void batch_norm_on_host(NormBackward const& pass);

}  // namespace stratagem::gpu
