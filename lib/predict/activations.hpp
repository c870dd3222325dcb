#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "plan/run_config.hpp"

namespace stratagem {

/// What one forward and backward pass holds beside parameters, their flat gradients, and all else
/// that lasts; without the batch itself [B].
struct ActivationUse {
  std::int64_t kept = 0;  ///< for the backward pass, where it begins
  std::int64_t peak = 0;  ///< most at any moment: what is kept, what autograd returns, temporaries
};

/// Bytes at the moments of a small pass that was run.
struct ActivationPass {
  std::int64_t kept = 0;
  /// Most while each block went forward, while the loss was computed, while each block went back.
  std::vector<std::int64_t> peaks;
};
/// By all that decides what they hold, and the version of LibTorch they were run with: opaque.
using ActivationPasses = std::map<std::string, ActivationPass>;

/// Predicts the pass of one worker from passes that are run on the CPU, all parameters being views
/// of the same zeros. A pass that is going to hold up to 64 MiB is run as it is. Of a larger one,
/// passes of a few samples and of twice as many are run, as many as that room allows: the bytes at
/// each block are lines through the two, and the peak is the largest of the predicted moments. Of a
/// model that has the same parameters for every size of image, large images are not run: what a
/// sample needs grows with the pixels from what it needs at 32 x 32 and at 64 x 64. Passes of one
/// kind are run once.
///
/// Few samples hide where many need most: kernels have scratch memory of a fixed size (oneDNN's for
/// bf16 on processors with AMX: 0.3 MB for LeNet), and beside it a block may need most at another
/// point of its work. A line from 4 and 8 samples told 3 % too little there for 64 samples, 15 %
/// for 256. With passes of 32 to 64 MiB fixed parts are small: by no more than their share of such
/// a pass can a line tell too little.
///
/// The temporaries of a kernel may grow in another way: with threads that this machine lacks, or
/// because more samples make the library choose another kernel; and a GPU's kernels need other
/// ones. fp16 counts as bf16 does. Nothing is known of communication. Needs
/// install_host_allocator(), some memory for the few samples, and that no other thread allocates
/// tensors meanwhile.
class ActivationPredictor {
 public:
  enum class Machine { this_one, another };

  /// `known`: passes that were run before on this machine, or on another that is planned for, which
  /// has other kernels: what it knows of is then not run here. `automatic`: the device of runs that
  /// do not ask for one.
  explicit ActivationPredictor(ActivationPasses known = {}, Machine machine = Machine::another,
                               gpu::DeviceKind automatic = usual_device())
      : machine_(machine), automatic_(automatic), given_(std::move(known)), passes_(given_) {}

  /// A GPU for a build with CUDA, wherever it plans.
  static gpu::DeviceKind usual_device();

  /// For `samples` samples of `model`, which was made from `config` and `input`, on `threads`
  /// threads of LibTorch (0: not known).
  ActivationUse predict(Model const& model, ModelConfig const& config, InputShape const& input,
                        Precision precision, std::int64_t samples, int threads,
                        DeviceChoice device = DeviceChoice::automatic);

  /// How long that pass takes on this machine, in proportion to a small one, which is run several
  /// times: the least after a warm-up [s]. Rough.
  static double time_pass(Model const& model, ModelConfig const& config, InputShape const& input,
                          Precision precision, std::int64_t samples, int threads);

  /// Those that were known, and those that were run since.
  ActivationPasses const& passes() const { return passes_; }

 private:
  class Probe;
  class Family;

  Machine machine_;
  gpu::DeviceKind automatic_;
  ActivationPasses given_;
  ActivationPasses passes_;
};

}  // namespace stratagem
