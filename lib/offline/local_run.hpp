#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/serial/serial_world.hpp"
#include "data/loader.hpp"
#include "model/weights.hpp"
#include "plan/run_plan.hpp"
#include "strategy/offline.hpp"
#include "strategy/registry.hpp"
#include "trace/collect.hpp"

namespace stratagem {

/// A run of several ranks as one process needs it that plays all of them, on the CPU and without
/// MPI.
class LocalRun {
 public:
  /// Reads data and weights, makes the plan. Errors as those of a run.
  LocalRun(RunConfig const& config, int ranks);

  RunPlan const& plan() const { return plan_; }
  Dataset const& dataset() const { return dataset_; }
  TensorMap const& weights() const { return weights_; }
  /// Refer to this object.
  StrategyParts parts();

  Batch batch(Share const& share);
  struct Tested {
    double loss = 0, accuracy = 0;  ///< means over all labels of the test data
  };
  /// `predict` gives the logits of a batch.
  Tested test(std::function<at::Tensor(at::Tensor const& inputs)> const& predict) const;

 private:
  Model model_;
  Dataset dataset_;
  TensorMap weights_;
  RunPlan plan_;
  SerialWorld alone_;
  trace::Recorder recorder_;
  Loader loader_;
  BatchMaker test_maker_;
};

/// An asynchronous run, made again in this process.
struct Replayed {
  std::string digest;  ///< of the parameters at the end
  std::int64_t pushes = 0;
  int servers = 0;
};

/// From the configuration and the traces of a run that came to its end in one attempt. Takes as
/// many threads as its ranks had. Error(bad_data) when the traces do not hold all of it, or not of
/// the data there is now; Error(usage) for a run that has nothing to replay.
Replayed replay_run(RunConfig const& config, trace::RunTraces const& traces);

/// After an epoch of a simulated training.
struct SimulatedEpoch {
  std::int64_t epoch = 0;
  double train_loss = 0;
  LocalRun::Tested test;
  SimulatedCounts counts;  ///< since the begin
  ClusterModel cluster;    ///< times are predicted with this
};

/// Trains as `config` says, with `workers` workers of a cluster that is only a model. `told` hears
/// of every epoch that is evaluated; returns the last. Error(usage) for a strategy without servers.
SimulatedEpoch simulate_run(RunConfig const& config, ClusterModel const& cluster, int workers,
                            std::function<void(SimulatedEpoch const&)> const& told);

}  // namespace stratagem
