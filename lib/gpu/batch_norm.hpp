#pragma once

#include <algorithm>
#include <cstdint>

#include "base/activation.hpp"
#include "gpu/element.hpp"

namespace stratagem::gpu {

/// Maps of a batch as a matrix: a row per pixel of each sample, a column per channel, without gaps.
struct Maps {
  std::int64_t rows, channels;
  Element type;
};

/// How the rows of a column are added up: this order gives the bits. A block of threads has the
/// columns of a few vectors of four channels. Each thread adds every strides()-th row of a slice,
/// then threads are added in a tree, then slices in parts.
struct NormSums {
  static constexpr int threads = 512, warp = 32, width = 4;

  explicit constexpr NormSums(Maps const& maps)
      : one_slice(maps.rows <= 2048),
        vectors((one_slice ? 2 : 4) * (maps.type == Element::fp32 ? 1 : 2)) {
    auto const groups = (maps.channels + columns() - 1) / columns();
    if (!one_slice) slices = std::clamp<std::int64_t>(256 / groups, 1, 128);
    rows = (maps.rows + slices - 1) / slices;
  }

  constexpr int columns() const { return vectors * width; }
  constexpr int strides() const { return threads / vectors; }
  constexpr int parts() const { return threads / columns(); }

  bool one_slice;  ///< a block has all rows of its columns, and no other kernel is needed
  int vectors;     ///< of a block
  std::int64_t slices = 1, rows = 0;  ///< of a slice
};

/// Whether there are kernels for such maps: rows of whole vectors, and more than one.
constexpr bool has_batch_norm(Maps const& maps) {
  return maps.rows > 1 && maps.channels > 0 && maps.channels % NormSums::width == 0;
}

/// Floats of working memory that a pass needs.
constexpr std::int64_t norm_scratch(Maps const& maps) {
  return 2 * NormSums(maps).slices * maps.channels;
}

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

struct Device;

/// On the compute stream of a GPU, or at once on the host, with the same bits. Maps are aligned to
/// a vector.
void batch_norm(NormForward const& pass, Device const& device);
void batch_norm(NormBackward const& pass, Device const& device);

}  // namespace stratagem::gpu
