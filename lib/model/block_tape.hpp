#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/block.hpp"
#include "model/gradient_places.hpp"
#include "model/model_config.hpp"

namespace stratagem {

/// Whether a gradient overwrites its slot or is added to it.
enum class GradWrite { overwrite, accumulate };

/// Consecutive blocks of a model: [first, end).
struct BlockSpan {
  int first = 0, end = 0;

  int size() const { return end - first; }
};

/// What a pass through a range of blocks keeps: from its forward pass what the backward pass needs,
/// which frees it block by block, and from that what is not summed up yet. Used for one pass after
/// the other, or beside passes of the same blocks whose backward pass is still to come.
class TapePass {
 public:
  BlockSpan blocks() const { return blocks_; }

  /// The first block whose kept output is not finite; -1 if there is none. Used for the message
  /// about a non-finite loss, after forward and before backward.
  int first_non_finite() const;

  /// Drops what was kept for a backward pass that will not run.
  void clear();

 private:
  friend class BlockTape;
  struct Kept {
    at::Tensor input;   ///< detached from the previous block
    at::Tensor output;  ///< of this part only
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> buffers;  ///< of a recomputed block, like its context
    Context context;
  };

  /// How a block of the pass has a parameter: alone, or of several that run from the last block to
  /// the first.
  enum class Use { alone, last, between, first };

  TapePass(Blocks const& all, BlockSpan blocks, bool input_gradient);
  static std::vector<std::vector<Use>> uses_of(Blocks const& all, BlockSpan blocks);
  Use use(int block, std::size_t parameter) const {
    return uses_[static_cast<std::size_t>(block - blocks_.first)][parameter];
  }
  Kept& of(int block) { return kept_[static_cast<std::size_t>(block - blocks_.first)]; }
  Kept const& of(int block) const { return kept_[static_cast<std::size_t>(block - blocks_.first)]; }
  GradientPlaces& places(int block) {
    return *places_[static_cast<std::size_t>(block - blocks_.first)];
  }

  BlockSpan blocks_;
  bool input_gradient_;                 ///< that of the first block's input is wanted
  std::vector<std::vector<Use>> uses_;  ///< by block and parameter of its frame
  std::vector<Kept> kept_;              ///< by block
  std::shared_ptr<gpu::Branch> branch_ = std::make_shared<gpu::Branch>();
  std::vector<c10::intrusive_ptr<GradientPlaces>> places_;  ///< by block
  std::vector<at::Tensor> counters_;                        ///< of the blocks that have run forward
  at::Tensor of_parts_;  ///< gradient of the input of one layer's parts, summed so far
  /// Sums over the blocks that have run backward, by parameter, where others are added later.
  std::map<std::string, at::Tensor> begun_;
};

/// Runs the blocks of a model one at a time, forward (keeping what the backward pass needs) or
/// backward. It cuts the autograd graph between blocks, so that a block's parameters are needed
/// only while that block runs. Does not know about ranks, and keeps nothing itself: that is the
/// pass's.
///
/// A recomputed block runs forward without a graph and keeps only its input. Its backward pass runs
/// it again, with the same masks, and with a copy of its running statistics, which already include
/// this input. All results have the same bits as without recomputation.
///
/// Parts of one layer use the same loop. Forward: each part except the last passes its input on,
/// and the last returns the joined output. Backward: each part except the first passes the joined
/// gradient on, and the first returns the sum of their input gradients, added from the last part to
/// the first.
class BlockTape {
 public:
  /// The blocks must outlive the tape.
  explicit BlockTape(Blocks const& blocks, Recompute recompute = {});

  int blocks() const { return static_cast<int>(blocks_.size()); }

  /// A pass through all blocks, whose backward pass ends without a gradient of the input.
  TapePass begin() const { return begin({0, blocks()}, false); }
  /// Through some of them, which hold all parts of their layers. `input_gradient`: whether the
  /// backward pass returns that of the first one's input. A parameter that blocks outside use, too,
  /// gets the gradients of those inside.
  TapePass begin(BlockSpan range, bool input_gradient) const;

  /// Input of block + 1. The frame's parameters are leaves that require gradients; they must have
  /// the same values again when backward runs.
  at::Tensor forward(TapePass& pass, int block, at::Tensor const& x, Frame const& frame) const;

  /// Writes the gradients of the block's parameters to `gradients`, in the frame's order; these may
  /// have another floating type. The gradients of a parameter that several blocks use are summed
  /// from the last block to the first before anything else is added. Returns the gradient of the
  /// block's input; undefined for the first of the pass, unless that is wanted.
  at::Tensor backward(TapePass& pass, int block, at::Tensor const& grad_output,
                      std::span<at::Tensor const> gradients, GradWrite write) const;

  /// Like forward, but keeps nothing for a backward pass.
  at::Tensor infer(TapePass& pass, int block, at::Tensor const& x, Frame const& frame) const;

 private:
  Block const& block_at(int block) const { return *blocks_[static_cast<std::size_t>(block)]; }
  /// Together, when the pass is complete: a GPU needs one kernel for all.
  void count_pass(TapePass& pass, int block, Frame const& frame) const;
  void open_places(TapePass& pass, int block, at::Tensor const& input,
                   std::span<at::Tensor const> gradients, GradWrite write) const;
  void land(TapePass& pass, int block, std::span<at::Tensor const> gradients,
            std::span<at::Tensor> fresh, GradWrite write) const;
  void recompute(TapePass& pass, int block, TapePass::Kept& kept) const;
  at::Tensor join(TapePass const& pass, int block, at::Tensor const& x) const;
  at::Tensor own_slice(TapePass const& pass, int block, at::Tensor const& joined) const;

  std::string const& name_of(int block, std::size_t parameter) const;

  Blocks const& blocks_;
  Recompute recompute_;
};

}  // namespace stratagem
