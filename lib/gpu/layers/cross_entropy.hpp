#pragma once

#include <cstdint>

#include "gpu/element.hpp"

namespace stratagem::gpu {

struct Device;

/// Logits [rows, classes] of `type`, without gaps, and a label for each row.
struct CrossEntropyPass {
  /// Threads that a row has: each takes every threads-th class, then threads are added in a tree.
  static constexpr int threads = 512;

  std::int64_t rows, classes;
  Element type;
  void const* logits;
  std::int64_t const* labels;  ///< [rows]; a row whose label is no class has loss NaN
  void* gradient;              ///< as the logits: (softmax - [label]) scale / rows
  float scale;
  float *row_losses, *row_correct;  ///< [rows], working memory
  float *loss, *correct;  ///< mean of -log softmax at the label; labels that have the largest logit
};

/// In fp32, on the compute stream of a GPU, or at once on the host, with the same bits.
void cross_entropy(CrossEntropyPass const& pass, Device const& device);

/// What the kernels do, in their order: they are tested against it.
void cross_entropy_on_host(CrossEntropyPass const& pass);

}  // namespace stratagem::gpu
