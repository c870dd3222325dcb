#pragma once

#include <span>
#include <vector>

#include "model/block.hpp"
#include "model/model_config.hpp"

namespace stratagem {

/// Whether a gradient replaces what its slot holds or is added to it.
enum class Landing { store, add };

/// Runs the blocks of a model one at a time, forward (keeping what backward needs) or backward. It
/// cuts the graph between blocks, so that a block's parameters are needed only while that block
/// runs. Knows no ranks; holds one pass at a time, and frees what a block kept in its backward.
///
/// A block that is recomputed runs forward without a graph and keeps its input alone; its backward
/// runs it again, with the same masks and on a copy of its running statistics, which have seen this
/// input already. Every result has the bits that it has without recomputation.
///
/// Parts of one layer follow the same loop: forward, each but the last passes its input on, and the
/// last returns the joined output; backward, each but the first passes the joined gradient on, and
/// the first returns the sum of their input gradients, added from the last part to the first.
class BlockTape {
 public:
  /// The blocks outlive the tape.
  explicit BlockTape(Blocks const& blocks, Recompute recompute = {});

  int blocks() const { return static_cast<int>(kept_.size()); }

  /// Input of block + 1. The frame's parameters are leaves that require gradients, and must hold
  /// the same values again when backward runs.
  at::Tensor forward(int block, at::Tensor const& x, Frame const& frame);

  /// Lands the gradients of the block's parameters in `gradients`, which are in declaration order
  /// and may have another floating type; returns that of its input, undefined for block 0.
  at::Tensor backward(int block, at::Tensor const& grad_output,
                      std::span<at::Tensor const> gradients, Landing landing);

  /// As forward, but nothing is kept for a backward.
  at::Tensor infer(int block, at::Tensor const& x, Frame const& frame);

  /// The first block whose kept output is not finite, -1 if there is none. For a message about a
  /// loss that is not finite: after forward, before backward.
  int first_non_finite() const;

  /// Drops what a pass that gets no backward has kept.
  void clear();

 private:
  struct Kept {
    at::Tensor input;   ///< detached from the block before
    at::Tensor output;  ///< of this part alone
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> buffers;  ///< of a block that is recomputed, as is its context
    Context context;
  };

  Kept& slot(int block) { return kept_[static_cast<std::size_t>(block)]; }
  Block::Part part(int block) const { return blocks_[static_cast<std::size_t>(block)]->part(); }
  void recompute(int block, Kept& kept) const;
  at::Tensor join(int block, at::Tensor const& x) const;
  at::Tensor own_slice(int block, at::Tensor const& joined) const;

  Blocks const& blocks_;
  Recompute recompute_;
  std::vector<Kept> kept_;
  at::Tensor input_gradient_;  ///< sum over the parts of one layer so far
};

}  // namespace stratagem
