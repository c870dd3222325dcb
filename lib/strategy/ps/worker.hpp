#pragma once

#include <utility>
#include <vector>

#include "comm/work.hpp"
#include "model/block_tape.hpp"
#include "params/server_plan.hpp"
#include "strategy/cross_entropy.hpp"
#include "strategy/factory.hpp"
#include "strategy/ps/messages.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/ps/pull_pace.hpp"
#include "strategy/ps/share.hpp"
#include "strategy/ps/transport.hpp"
#include "strategy/replica.hpp"
#include "strategy/replicas.hpp"

namespace stratagem {

/// A worker of a parameter server (Li et al., "Scaling distributed machine learning with the
/// parameter server", OSDI 2014): computes gradients with the parameters that the servers sent
/// last. Chunks of the gradient leave while the backward pass goes on, and chunks of parameters
/// arrive while the next forward pass does.
class PsWorker final : public Strategy {
 public:
  PsWorker(PsConfig const& config, StrategyParts const& parts);

  void begin_round(std::int64_t first_step, std::int64_t end_step) override;
  std::vector<Share> new_shares() override { return std::exchange(shares_, {}); }
  StepResult step(Batch const& batch, StepOptions const& options) override;
  void drain() override;
  /// Its parameters: between two rounds, and in a synchronous one, all workers have the same.
  NamedTensors replicas() override;

  void prepare_evaluation() override;
  at::Tensor predict(at::Tensor const& images) override;
  std::string report() override;
  NamedTensors gather_parameters(Wanted const& wanted) override;
  NamedTensors gather_momentum(Wanted const& wanted) override;
  NamedTensors gather_buffers() override;
  std::map<int, NamedTensors> own_buffers() override;
  std::map<std::string, double> counters() const override;
  void load(std::map<std::string, at::Tensor> const& tensors) override;
  void load_momentum(std::map<std::string, at::Tensor> const&) override {}  // it is the servers'
  void load_buffers(int worker, std::map<std::string, at::Tensor> const& tensors) override;
  void load_counters(std::map<std::string, double> const& counters) override;

 private:
  at::Tensor forward(Batch const& micro);
  /// Pushes, and pulls, what the last pass of a push completes.
  void backward(at::Tensor gradient, Landing landing, bool last_micro_batch);
  /// Tells all servers what follows, and asks server 0 for its answer.
  void announce(PsLine const& line);
  /// Async, where that depends on the whole gradient: tells them what becomes of it.
  void end_push();
  void push(ServerChunk const& chunk);
  void pull(ServerChunk const& chunk);
  void pull_all();
  /// Waits until the parameters before `end` of the flat space are there.
  void await_parameters(std::int64_t end);
  StepResult result_of(Batch const& batch, PsLine const& line);
  /// Of one pass, into the line.
  void note(CrossEntropy const& pass, Batch const& micro, PsLine& line);
  void note_bad_loss(Batch const& batch);
  /// Sleeps as long as a slower processor would have computed more.
  void be_slow(std::int64_t busy_ns) const;
  /// All workers have the parameters; one is enough to hand them out.
  bool holds_whole_tensors() const { return worker_ == 0; }
  int workers() const { return plan_.workers(); }

  PsConfig config_;
  StrategyParts parts_;
  Replica replica_;
  ServerPlan plan_;
  std::unique_ptr<PsTransport> transport_;
  ServerPolicy policy_;
  GradientScale scale_;
  int worker_;
  Buffers buffers_, evaluation_buffers_;
  at::Tensor gradients_;                                 ///< laid out as the parameters
  std::vector<std::vector<at::Tensor>> gradient_views_;  ///< by block
  BlockTape tape_;

  at::Tensor line_, answer_, end_;  ///< messages
  std::vector<Work> sends_;         ///< of the line, of gradients, and of the end
  std::vector<Work> pulls_;         ///< by chunk
  std::size_t awaited_ = 0;         ///< chunks from here on have arrived
  Work answered_;
  ShareSequence round_;           ///< asynchronous only
  std::vector<Share> shares_;     ///< dealt and not yet taken
  std::int64_t pushes_ = 0;       ///< in this round, the one under way included
  bool pulls_now_ = true;         ///< parameters come back for the push under way
  PullPace pace_;                 ///< asynchronous only
  ReplicaHashes hashes_;          ///< of this step, where it compares them
  int first_bad_block_ = -1;      ///< of this step's passes
  bool usable_ = true;            ///< this step's gradients, as far as this worker knows
  std::int64_t waited_ns_ = 0;    ///< for parameters, in this step's forward passes
  std::int64_t backward_ns_ = 0;  ///< of the last backward pass
};

}  // namespace stratagem
