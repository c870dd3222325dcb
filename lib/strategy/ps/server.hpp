#pragma once

#include <optional>
#include <vector>

#include "comm/work/work.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/protocol/messages.hpp"
#include "strategy/ps/protocol/push_code.hpp"
#include "strategy/ps/protocol/transport.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/ps/round_counts.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// A server: holds a shard of the parameters. A round ends when every worker has finished its own,
/// and all of them have the parameters then.
class PsServer : public Server {
 public:
  PsServer(PsPlan plan, StrategyParts const& parts);

  std::string report() override;
  /// Of the rounds since the last report.
  RoundCounts const& counts() const { return counts_; }
  /// The shard, and what is kept for it.
  State state() override;
  void state_replaced() final;
  double discarded() const override { return discarded_; }

 protected:
  int workers() const { return plan_.workers(); }
  int rank_of(int worker) const { return plan_.placement.rank_of_worker(worker); }
  /// Server 0 answers the workers' lines.
  bool answers() const { return server_ == 0; }

  /// The shard.
  StoreMemory const& memory() const { return transport_->memory(); }
  /// Some chunks of a worker's gradient into its slot, in the order in which they come. What has
  /// come is there once it is read.
  std::vector<Work> receive_gradients(int worker, std::vector<ServerChunk> const& chunks);
  void read_gradient(int worker, ServerChunk const& chunk);
  /// Chunks of what is outgoing to a worker, those that the forward pass needs first in front.
  std::vector<Work> send_parameters(int worker, std::vector<ServerChunk> const& chunks);
  /// Error(non_finite) where what came of these workers for a step is not finite: it was applied.
  void check_gradients(std::int64_t step, std::vector<int> const& workers) const;
  /// Of gradients, as they come.
  std::int64_t bytes_of(std::vector<ServerChunk> const& chunks) const;
  /// Into the trace, and into what is told of the round.
  void note(trace::PsRecord const& record);

  PsPlan plan_;
  StrategyParts parts_;
  ParameterLayout layout_;
  int server_;
  std::vector<ServerChunk> own_;  ///< in the order of the plan
  std::unique_ptr<PsTransport> transport_;
  std::vector<VersionDomain> domains_;
  std::vector<ParameterStore> stores_;  ///< by domain
  GradientScale scale_;
  RoundCounts counts_;  ///< since the last report
  double discarded_ = 0;

 private:
  /// Of one of the domains: what its store keeps.
  void add_kept(std::size_t domain, State& state) const;
  /// The seed's values.
  void initialise_shard();

  std::optional<PushCode> code_;
};

}  // namespace stratagem
