#pragma once

#include <vector>

#include "comm/work.hpp"
#include "strategy/buffers.hpp"
#include "strategy/factory.hpp"
#include "strategy/ps/messages.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/ps_plan.hpp"

namespace stratagem {

/// A server: holds a shard of the parameters and is handed no batches. Its drain() serves one
/// round: it ends when every worker has finished its own, and all of them have the parameters then.
class PsServer : public Strategy {
 public:
  PsServer(PsConfig const& config, StrategyParts const& parts);

  StepResult step(Batch const& batch, StepOptions const& options) override;
  void prepare_evaluation() override;
  at::Tensor predict(at::Tensor const& images) override;
  NamedTensors gather_parameters(Wanted const&) override { return {}; }
  NamedTensors gather_momentum(Wanted const&) override;
  NamedTensors gather_buffers() override;
  std::map<int, NamedTensors> own_buffers() override { return {}; }
  void load(std::map<std::string, at::Tensor> const& tensors) override;
  void load_momentum(std::map<std::string, at::Tensor> const& tensors) override;
  void load_buffers(int, std::map<std::string, at::Tensor> const&) override {}

 protected:
  int workers() const { return static_cast<int>(plan_.roles.workers.size()); }
  int rank_of(int worker) const { return plan_.roles.workers[static_cast<std::size_t>(worker)]; }
  /// Server 0 answers the workers' lines.
  bool answers() const { return server_ == 0; }

  /// The chunks of a worker's gradient into its slot, in the order in which they come.
  std::vector<Work> receive_gradients(int worker);
  Work send_chunk(int worker, at::Tensor const& shard, ServerChunk const& chunk);
  /// All chunks, those that the forward pass needs first in front.
  std::vector<Work> send_shard(int worker, at::Tensor const& shard);
  std::int64_t shard_bytes() const;

  StrategyParts parts_;
  ParameterLayout layout_;
  ServerPlan plan_;
  ServerPolicy policy_;
  int server_;
  std::vector<ServerChunk> own_;  ///< in the order of the plan
  ParameterStore store_;

 private:
  bool owns_part_of(ParameterEntry const& entry) const;
  /// Copies what `shard` has of a parameter.
  void place(ParameterEntry const& entry, at::Tensor const& values, at::Tensor const& shard) const;

  Buffers buffers_;  ///< never trained; what the workers' are averaged like
};

}  // namespace stratagem
