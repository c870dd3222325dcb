#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include "model/block_tape.hpp"

namespace stratagem {

/// How a pass goes through the blocks: from the first on with a backward pass to follow, from the
/// last on, or from the first on alone.
enum class Direction { forward, backward, inference };

/// Where the gradients of a block go, in the order of its parameters.
struct GradientTarget {
  std::span<at::Tensor const> tensors;
  GradWrite write = GradWrite::overwrite;
};

/// Parameters and gradients of a model, block by block, as passes need them (see Passes). A pass
/// unshards each block before it runs and reshards it afterwards; a backward pass asks where the
/// gradients of a block go and says when they are there.
class BlockStore {
 public:
  virtual ~BlockStore() = default;

  /// Waits until the block can run. Returns what it runs with, leaves of the autograd graph; the
  /// tensors hold until reshard(), and the same ones again in the backward pass.
  virtual std::span<at::Tensor const> unshard(int block, Direction direction) = 0;
  /// The block has run: its parameters may be given up until the next unshard().
  virtual void reshard(int /*block*/, Direction /*direction*/) {}
  virtual GradientTarget gradients(int block) = 0;
  /// The gradients of the block are where gradients() said, and those of all blocks behind it.
  virtual void landed(int /*block*/) {}
};

}  // namespace stratagem
