#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "strategy/serial/serial_config.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// What the sum of all workers' gradients becomes where they travel in a code, and what is kept of
/// each worker: as strategies with ranks make it, bit for bit.
class WorkerSums {
 public:
  virtual ~WorkerSums() = default;

  /// sum <- sum + a worker's gradients, in the order of workers. The first worker's are `sum`
  /// itself. They may be written to.
  virtual void add(int worker, at::Tensor const& gradients, at::Tensor const& sum,
                   std::int64_t step) = 0;
  /// All workers' are there.
  virtual void finish(at::Tensor const& sum, std::int64_t step) = 0;

  /// What is kept for the next step.
  virtual std::vector<ParameterState> state() const { return {}; }
};

/// In the code that is chosen, or as they are.
std::unique_ptr<WorkerSums> make_worker_sums(SerialConfig const& config, StrategyParts const& parts,
                                             ParameterLayout const& layout);

/// That they hold, beside gradients.
std::int64_t bytes_held_by_sums(SerialConfig const& config, ParameterLayout const& layout);

}  // namespace stratagem
