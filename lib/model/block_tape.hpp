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

/// Runs the blocks of a model one at a time, forward (keeping what the backward pass needs) or
/// backward. It cuts the autograd graph between blocks, so that a block's parameters are needed
/// only while that block runs. Does not know about ranks. Holds one pass at a time; the backward
/// pass of a block frees what its forward pass kept.
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

  int blocks() const { return static_cast<int>(kept_.size()); }

  /// Input of block + 1. The frame's parameters are leaves that require gradients; they must have
  /// the same values again when backward runs.
  at::Tensor forward(int block, at::Tensor const& x, Frame const& frame);

  /// Writes the gradients of the block's parameters to `gradients`, in the frame's order; these may
  /// have another floating type. The gradients of a parameter that several blocks use are summed
  /// from the last block to the first before anything else is added. Returns the gradient of the
  /// block's input; undefined for block 0.
  at::Tensor backward(int block, at::Tensor const& grad_output,
                      std::span<at::Tensor const> gradients, GradWrite write);

  /// Like forward, but keeps nothing for a backward pass.
  at::Tensor infer(int block, at::Tensor const& x, Frame const& frame);

  /// The first block whose kept output is not finite; -1 if there is none. Used for the message
  /// about a non-finite loss, after forward and before backward.
  int first_non_finite() const;

  /// Drops what was kept for a backward pass that will not run.
  void clear();

 private:
  struct Kept {
    at::Tensor input;   ///< detached from the previous block
    at::Tensor output;  ///< of this part only
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> buffers;  ///< of a recomputed block, like its context
    Context context;
  };

  Kept& slot(int block) { return kept_[static_cast<std::size_t>(block)]; }
  Block::Part part(int block) const { return blocks_[static_cast<std::size_t>(block)]->part(); }
  /// Together, when the pass is complete: a GPU needs one kernel for all.
  void count_pass(int block, Frame const& frame);
  void open_places(int block, at::Tensor const& input, std::span<at::Tensor const> gradients,
                   GradWrite write);
  void land(int block, std::span<at::Tensor const> gradients, std::span<at::Tensor> fresh,
            GradWrite write);
  void recompute(int block, Kept& kept) const;
  at::Tensor join(int block, at::Tensor const& x) const;
  at::Tensor own_slice(int block, at::Tensor const& joined) const;

  Blocks const& blocks_;
  Recompute recompute_;
  /// How a block has a parameter: alone, or of several that run from the last block to the first.
  enum class Use { alone, last, between, first };
  static std::vector<std::vector<Use>> uses_of(Blocks const& blocks);
  std::string const& name_of(int block, std::size_t parameter) const;

  std::vector<std::vector<Use>> uses_;  ///< by block and parameter of its frame
  std::vector<Kept> kept_;
  std::shared_ptr<gpu::Branch> branch_ = std::make_shared<gpu::Branch>();
  std::vector<c10::intrusive_ptr<GradientPlaces>> places_;  ///< by block
  std::vector<at::Tensor> counters_;                        ///< of the blocks that have run forward
  at::Tensor input_gradient_;  ///< sum over the parts of one layer so far
  /// Sums over the blocks that have run backward, by parameter, where others are added later.
  std::map<std::string, at::Tensor> begun_;
};

}  // namespace stratagem
