#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/model.hpp"
#include "optim/optim_config.hpp"

namespace stratagem {

/// What one forward and backward pass holds beside parameters, their flat gradients, and all else
/// that lasts; without the batch itself [B].
struct ActivationUse {
  std::int64_t kept = 0;  ///< for the backward pass, where it begins
  std::int64_t peak = 0;  ///< most at any moment: what is kept, what autograd returns, temporaries
  double pass_s = 0;  ///< its time on this machine, in proportion to that of a small pass; rough
};

/// Bytes at the moments of a small pass that was run.
struct ActivationPass {
  std::int64_t kept = 0;
  /// Most while each block went forward, while the loss was computed, while each block went back.
  std::vector<std::int64_t> peaks;
  double time_s = 0;
};
/// By all that decides what they hold, and the version of LibTorch they were run with: opaque.
using ActivationPasses = std::map<std::string, ActivationPass>;

/// Predicts the pass of one worker. Small passes are run on the CPU, with a few samples and with
/// twice as many, all parameters being views of the same zeros; the bytes after each block are
/// lines through the two, and the peak is the largest of the predicted moments. Of a model that has
/// the same parameters for every size of image, large images are not run: what a sample needs grows
/// with the pixels from what it needs at 32 x 32 and at 64 x 64. Passes of one kind are run once.
///
/// The peak is a little low where a block needs most at another point of its work with many samples
/// than with few. The temporaries of a kernel may grow in another way: with threads that this
/// machine lacks, or because more samples make the library choose another kernel; and a GPU's
/// kernels need other ones. fp16 counts as bf16 does. Nothing is known of communication. Needs
/// install_host_allocator(), some memory for the few samples, and that no other thread allocates
/// tensors meanwhile.
class ActivationPredictor {
 public:
  /// `known`: passes that were run elsewhere, such as on the machine that is planned for.
  explicit ActivationPredictor(ActivationPasses known = {}) : passes_(std::move(known)) {}

  /// For `samples` samples of `model`, which was made from `config` and `input`, on `threads`
  /// threads of LibTorch (0: not known).
  ActivationUse predict(Model const& model, ModelConfig const& config, InputShape const& input,
                        Precision precision, std::int64_t samples, int threads);

  /// Those that were known, and those that were run since.
  ActivationPasses const& passes() const { return passes_; }

 private:
  class Probe;

  ActivationPasses passes_;
};

}  // namespace stratagem
