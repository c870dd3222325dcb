#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "strategy/gradient_scale.hpp"
#include "strategy/ps/cluster_clock.hpp"
#include "strategy/ps/lag_counts.hpp"
#include "strategy/ps/local_pass.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/ps/pull_pace.hpp"
#include "strategy/ps/share.hpp"
#include "strategy/state/counters.hpp"

namespace stratagem {

/// What happened so far in a simulated training.
struct SimulatedCounts {
  std::int64_t pushes = 0, pulls = 0, updates = 0;
  std::int64_t dropped = 0;     ///< pushes
  std::int64_t overflowed = 0;  ///< of these: under the loss scale
  LagCounts lags;
  double time = 0;          ///< in mean passes, see ClusterModel
  double idle_share = 0;    ///< of the workers' time
  double server_share = 0;  ///< of the time that the server was busy
};

/// A parameter server and its workers in one process, without messages: the policy and the store
/// are those of real servers, the gradients are real, and only time is invented. There is one
/// server with one version: how many there are makes no difference to a policy without delays
/// between them, and chunks of a gradient come together.
class PsSimulation {
 public:
  /// How the training gets its batches and learning rates.
  struct Inputs {
    std::function<Batch(Share const&)> batch;
    std::function<double(std::int64_t step)> lr;
  };

  /// Of the plan's servers together.
  PsSimulation(PsPlan const& plan, ClusterModel const& cluster, StrategyParts const& parts,
               Inputs inputs);

  /// Before training: what it begins with in place of the seed's values.
  void load(std::map<std::string, at::Tensor> const& tensors);
  /// The same of the loss scales.
  void load_counters(Counters const& counters);

  /// Trains steps [first, end). Error(non_finite) when a loss is not finite. Returns the mean loss.
  double run_round(std::int64_t first_step, std::int64_t end_step);

  SimulatedCounts counts() const;
  NamedTensors parameters();
  /// Logits in evaluation mode, with running statistics averaged over workers.
  at::Tensor predict(at::Tensor const& images);

 private:
  void run_synchronous(std::int64_t first_step, std::int64_t end_step);
  void run_asynchronous(std::int64_t first_step, std::int64_t end_step);
  /// The gradient of a share with `parameters`, into the worker's slot.
  void compute(int worker, at::Tensor const& parameters, Share const& share);
  /// Whether a gradient is to be applied, by its norm where that matters.
  static bool admit(GradientScale& scale, at::Tensor const& gradient);
  /// In sync there is one.
  GradientScale& scale_of(int worker) {
    return scales_[scales_.size() == 1 ? 0 : static_cast<std::size_t>(worker)];
  }
  /// Lets workers go on that may, until nobody else may.
  void release();
  void go_on(int worker, bool pulls);
  void receive(int worker);

  StrategyParts parts_;
  int workers_;
  ServerPolicy policy_;
  Inputs inputs_;
  LocalPass pass_;
  ParameterStore store_;
  ClusterClock cluster_;
  std::vector<GradientScale> scales_;
  std::vector<Buffers> buffers_;  ///< by worker
  SimulatedCounts counts_;
  double loss_ = 0;          ///< sum over the shares of this round
  std::int64_t shares_ = 0;  ///< of this round, computed

  // Asynchronous policies.
  std::optional<ServerClock> clock_;
  ShareSequence round_;
  std::int64_t next_share_ = 0;
  std::vector<std::deque<Share>> dealt_;  ///< by worker
  std::vector<PullPace> paces_;           ///< by worker
  double lr_ = 0;                         ///< of the last push that was applied
};

}  // namespace stratagem
