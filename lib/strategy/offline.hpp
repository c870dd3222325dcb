#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "data/batch.hpp"
#include "data/sampler.hpp"
#include "model/safetensors.hpp"
#include "strategy/state/named_tensors.hpp"
#include "strategy/strategy_parts.hpp"
#include "trace/lag_counts.hpp"

namespace stratagem::trace {
class RankTrace;
}

namespace stratagem {

// Trainings of many ranks in one process, of strategies whose result depends on the order in which
// things happen.

/// How long things take in a cluster that is not there. The unit is a worker's mean step: the mean
/// time in which a worker that is not slow computes the gradient of a share.
struct ClusterModel {
  double jitter = 0.1;   ///< standard deviation of the logarithm of a step's time
  int slow_worker = -1;  ///< -1: none
  double slow = 1;       ///< factor of its steps
  double message = 0.1;  ///< all parameters, or a gradient, one way
  double update = 0.01;  ///< time for which a push keeps the server busy
  std::uint64_t seed = 1;
};

/// What happened so far in a simulated training.
struct SimulatedCounts {
  std::int64_t pushes = 0, pulls = 0, updates = 0;
  std::int64_t dropped = 0;     ///< pushes
  std::int64_t overflowed = 0;  ///< of these: under the loss scale
  LagCounts lags;
  double time = 0;          ///< predicted, in mean steps, see ClusterModel
  double idle_share = 0;    ///< of the workers' time
  double server_share = 0;  ///< of the time that the server was busy
};

/// How a simulated training gets its batches and learning rates.
struct SimulationInputs {
  std::function<Batch(Share const&)> batch;
  std::function<double(std::int64_t step)> lr;
};

/// A training whose order a model of a cluster decides.
class Simulation {
 public:
  virtual ~Simulation() = default;

  /// Before training: what it begins with in place of the seed's values.
  virtual void load(TensorMap const& tensors) = 0;
  /// Trains steps [first, end). Error(non_finite) when a loss is not finite. Returns the mean loss.
  virtual double run_round(std::int64_t first_step, std::int64_t end_step) = 0;
  virtual SimulatedCounts counts() const = 0;
  /// The times are predicted with this.
  virtual ClusterModel const& cluster() const = 0;
  /// Logits in evaluation mode.
  virtual at::Tensor predict(at::Tensor const& images) = 0;
};

/// A training that was recorded, made again in the same order.
class Replay {
 public:
  virtual ~Replay() = default;

  /// Before run(): what training began with in place of the seed's values.
  virtual void load(TensorMap const& tensors) = 0;
  /// Recorded pushes, of all servers.
  virtual std::int64_t pushes() const = 0;

  /// The batch of a step that begins at a place in the global batch.
  using BatchOf = std::function<Batch(std::int64_t step, std::int64_t first_slot)>;
  /// The parameters at the end. Error(bad_data) when the records are not those of a whole training
  /// of this kind.
  virtual NamedTensors run(BatchOf const& batch_of) = 0;
};

/// How a strategy whose result depends on the order of things trains in one process.
class PlannedOffline {
 public:
  virtual ~PlannedOffline() = default;

  virtual std::unique_ptr<Simulation> simulate(ClusterModel const& cluster,
                                               StrategyParts const& parts,
                                               SimulationInputs inputs) const = 0;
  /// Of what the servers recorded.
  virtual std::unique_ptr<Replay> replay(StrategyParts const& parts,
                                         std::vector<trace::RankTrace> const& servers) const = 0;
};

}  // namespace stratagem
