#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "gpu/device.hpp"
#include "optim/optimizer.hpp"
#include "strategy/pass/replica.hpp"
#include "strategy/shared/gradient_scale.hpp"

namespace stratagem {

/// From summed gradients to updated parameters: mean over workers and micro-batches, loss scaling,
/// clipping, the update rule. Holds the optimizer's state for the parameters that a rank owns.
class Update {
 public:
  /// `owned`: what this rank updates. A gradient is the sum of workers x micro_batches
  /// means over samples, or for `reduction: sum` counted as one of micro_batches.
  Update(OptimizerConfig const& optimizer, PrecisionConfig const& precision, int workers,
         int micro_batches, OwnedElements const& owned, gpu::Device const& device);

  /// What the loss is to be multiplied with before the backward pass.
  double loss_scale() const { return scale_.loss_scale(); }

  /// When gradients may be applied.
  enum class Way {
    by_range,  ///< as soon as those of a range are there: nothing has to be known of the others
    guarded,   ///< on a GPU, which continues while the host learns whether losses were finite: once
               ///< the ranks' refusal is there, with it
    by_decision  ///< once the host has decided with the norm of all
  };
  Way way() const { return way_; }
  /// `by_decision`, once per step before begin(): with the norm of all gradients (see
  /// gradient_norm). False when the step is to be skipped because scaled gradients overflowed.
  /// AgreedError(non_finite) when they are not finite for another reason.
  bool admit(double norm);

  /// Once per step that updates, before the first apply().
  void begin() { optimizer_->begin_update(); }
  /// Updates the owned elements of `range`. `parameters`, `gradients`: 1-D, just these elements.
  /// `refusal`: on a GPU, a fp32 scalar; where it is 1 nothing is updated.
  void apply(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients, double lr,
             std::optional<at::Tensor> const& refusal = {});
  /// The same of a replica's parameters, with what passes run with. `gradients`: just of `range`.
  void apply(FlatRange range, Replica& replica, at::Tensor const& gradients, double lr,
             std::optional<at::Tensor> const& refusal = {});

  /// False once a gradient that was applied was not finite, as far as the CPU knows.
  bool finite() const { return optimizer_->finite(); }

  /// What the optimizer keeps of the owned elements: [owned] of each kind.
  OptimizerState const& state() const { return optimizer_->state(); }
  /// What else the next step depends on: of the optimizer and of the loss scale.
  std::map<std::string, double*> counters();

 private:
  std::unique_ptr<Optimizer> optimizer_;
  GradientScale scale_;
  Way way_;
};

/// Of how many terms the gradients of so many workers are the mean.
int terms_of_mean(OptimizerConfig const& optimizer, int workers, int micro_batches);

/// sqrt of the sum of squares; on the CPU the same for every cut and order, NaN when not finite.
double gradient_norm(std::span<at::Tensor const> gradients);
/// Of gradients that are spread over several ranks, each of which calls it; `add_up` replaces a
/// tensor by the sum of theirs.
double gradient_norm(std::span<at::Tensor const> own,
                     std::function<void(at::Tensor const&)> const& add_up);
/// Of all ranks of a group. Collective.
double gradient_norm(std::span<at::Tensor const> own, Communicator& communicator);

}  // namespace stratagem
