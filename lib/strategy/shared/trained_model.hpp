#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "strategy/shared/step_status.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/state/named_tensors.hpp"

namespace stratagem {

/// A model that all ranks of a group train with one update per step: what becomes of the gradients
/// of a step's passes. Synchronous calls these in order, on all ranks alike.
class TrainedModel {
 public:
  virtual ~TrainedModel() = default;

  /// What the ranks learn of each other in a step; travels with the gradients, or beside them.
  virtual StepStatus& status() = 0;
  virtual Update& update() = 0;

  /// `kept`: the work of the step is a graph, which begins and ends in the same memory.
  virtual void begin_step(std::int64_t /*step*/, bool /*kept*/) {}
  /// Waits for the sum of the status.
  virtual void await_status() = 0;
  /// Waits for the sums of all gradients.
  virtual void await_sums() = 0;
  /// Updates what this rank owns, each part once its sum is there. `refusal`: see Update::apply().
  virtual void apply(double lr, std::optional<at::Tensor> const& refusal) = 0;
  virtual void end_step(bool /*kept*/) {}

  /// Norm of all summed gradients, which are there. Collective.
  virtual double gradient_norm() = 0;
  /// Ends a step in which a gradient was not finite that the ranks have applied.
  [[noreturn]] virtual void refuse_gradient(std::int64_t step) const = 0;
  /// What other ranks of the group hold, too, as far as it is there: see gather_replicas().
  virtual NamedTensors replicas() const { return {}; }
  /// Collective.
  virtual void gather_replicas() {}
};

}  // namespace stratagem
