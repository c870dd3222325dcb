#pragma once

#include <cstdint>

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

/// Predicts the pass of one worker over `samples` samples of `model`, which was made from `config`
/// and `input`, on `threads` threads of LibTorch (0: not known). Two small passes are run on the
/// CPU, with a few samples and with twice as many, all parameters being views of the same zeros;
/// the bytes after each block are lines through the two, and the peak is the largest of the
/// predicted moments.
///
/// The peak is a little low where a block needs most at another point of its work with many samples
/// than with few. The temporaries of a kernel may grow in another way: with threads that this
/// machine lacks, or because more samples make the library choose another kernel; and a GPU's
/// kernels need other ones. fp16 counts as bf16 does. Nothing is known of communication. Needs
/// install_host_allocator(), some memory for the few samples, and that no other thread allocates
/// tensors meanwhile.
ActivationUse predict_activations(Model const& model, ModelConfig const& config,
                                  InputShape const& input, Precision precision,
                                  std::int64_t samples, int threads);

}  // namespace stratagem
