#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "strategy/offline.hpp"
#include "strategy/ps/offline/cluster_clock.hpp"
#include "strategy/ps/offline/local_pass.hpp"
#include "strategy/ps/own_updates.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/policy/pull_schedule.hpp"
#include "strategy/ps/protocol/push_code.hpp"
#include "strategy/ps/protocol/share.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/shared/gradient_scale.hpp"
#include "strategy/state/counters.hpp"

namespace stratagem {

/// A parameter server and its workers in one process, without messages: the policy and the store
/// are those of real servers, the gradients are real, and only time is invented. There is one
/// server with one version: how many there are makes no difference to a policy without delays
/// between them, and chunks of a gradient come together.
class PsSimulation final : public Simulation {
 public:
  /// Of the plan's servers together.
  PsSimulation(PsPlan const& plan, ClusterModel const& cluster, StrategyParts const& parts,
               SimulationInputs inputs);

  void load(TensorMap const& tensors) override;
  /// Before training: the loss scales.
  void load_counters(Counters const& counters);

  double run_round(std::int64_t first_step, std::int64_t end_step) override;

  SimulatedCounts counts() const override;
  ClusterModel const& cluster() const override { return cluster_.model(); }
  NamedTensors parameters();
  /// With running statistics averaged over workers.
  at::Tensor predict(at::Tensor const& images) override;

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
  SimulationInputs inputs_;
  LocalPass pass_;
  std::optional<PushCode> code_;
  ParameterStore store_;
  std::unique_ptr<OwnUpdates> own_;  ///< in what workers have cached
  ClusterClock cluster_;
  std::vector<GradientScale> scales_;
  std::vector<Buffers> buffers_;       ///< by worker
  std::vector<at::Tensor> residuals_;  ///< by worker, where there is a code
  SimulatedCounts counts_;
  double loss_ = 0;          ///< sum over the shares of this round
  std::int64_t shares_ = 0;  ///< of this round, computed

  // Asynchronous policies.
  std::optional<ServerClock> clock_;
  ShareSequence round_;
  std::int64_t next_share_ = 0;
  std::vector<std::deque<Share>> dealt_;  ///< by worker
  std::vector<PullSchedule> paces_;       ///< by worker
  double lr_ = 0;                         ///< of the last push that was applied
};

}  // namespace stratagem
