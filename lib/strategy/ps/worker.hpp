#pragma once

#include <optional>
#include <vector>

#include "comm/work/work.hpp"
#include "strategy/pass/passes.hpp"
#include "strategy/pass/replica_gradients.hpp"
#include "strategy/ps/protocol/messages.hpp"
#include "strategy/ps/protocol/push_code.hpp"
#include "strategy/ps/protocol/transport.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// A worker of a parameter server (Li et al., "Scaling distributed machine learning with the
/// parameter server", OSDI 2014): computes gradients with the parameters that the servers sent
/// last. Chunks of the gradient leave while the backward pass goes on, and chunks of parameters
/// arrive while the next forward pass does. What synchronous and asynchronous workers do otherwise
/// is what they say about a push, and what they make of the answer.
class PsWorker : public Strategy, private BlockStore {
 public:
  PsWorker(PsPlan plan, StrategyParts const& parts);

  void begin_round(Round const&) override { pushes_ = 0; }
  StepResult step(Batch const& batch, StepOptions const& options) final;
  void drain() final;
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) final {
    return passes_.predict(store_, statistics, images);
  }
  std::string report() final;
  /// Its parameters: between two rounds, and in a synchronous one, all workers have the same. What
  /// else is kept for each parameter is the servers'.
  State state() override;
  void state_replaced() final { replica_.refresh(all()); }

 protected:
  /// Completes the line of a push; `pulls`: parameters come back for it.
  virtual void describe_push(PushHeader& line, StepOptions const& options) = 0;
  /// A pass had a loss that is not finite, first in the output of `block`, or -1.
  virtual void note_bad_loss(Batch const& batch, int block) = 0;
  /// When all of a push has left: what comes of it.
  virtual StepResult result_of(Batch const& batch, PushHeader const& line) = 0;

  /// What server 0 answers to the line.
  PullReply await_answer();
  /// Waits until the parameters before `end` of the flat space are there.
  void await_parameters(std::int64_t end);
  void send_to_servers(at::Tensor const& message, int tag);
  /// Makes gradients_, which have been pushed, what servers read.
  void read_pushed();
  NamedTensors replicas() const { return replica_.views(replica_.flat(), "parameters/"); }
  FlatRange all() const { return {0, replica_.layout().size()}; }
  int workers() const { return plan_.workers(); }

  PsPlan plan_;
  StrategyParts parts_;
  Replica replica_;
  std::unique_ptr<PsTransport> transport_;
  GradientScale scale_;
  int worker_;
  Buffers buffers_;
  at::Tensor gradients_;     ///< laid out as the parameters
  std::int64_t pushes_ = 0;  ///< in this round, the one under way included

 private:
  /// Waits for the parameters of the block where they are still arriving.
  std::span<at::Tensor const> unshard(int block, Direction direction) override;
  GradientTarget gradients(int block) override { return store_.gradients(block); }
  /// In the last pass of a step: pushes what is complete, and pulls it if the push does.
  void landed(int block) override;
  /// The last pass of `batch` follows: its gradients are announced, then pushed as they land.
  void begin_push(Batch const& batch, StepOptions const& options, PushHeader& line);
  /// Tells all servers what follows, and asks server 0 for its answer.
  void announce(PushHeader const& line);
  void push(ServerChunk const& chunk, Batch const& of);
  void pull(ServerChunk const& chunk);
  void pull_all();
  /// Of one pass, into the line.
  void note(CrossEntropy const& pass, Batch const& micro, PushHeader& line);
  /// Sleeps as long as a slower processor would have computed more.
  void be_slow(std::int64_t busy_ns) const;

  /// What the backward pass under way pushes.
  struct Pushing {
    Batch const& of;
    bool pulls = false;
    std::size_t next = 0;  ///< chunk
  };

  ReplicaGradients store_;  ///< gradients_, and the parameters
  Passes passes_;
  std::optional<Pushing> pushing_;
  std::optional<PushCode> code_;
  at::Tensor residual_, codes_;  ///< of gradients_, where there is a code
  at::Tensor line_, answer_;     ///< messages
  std::vector<Work> sends_;      ///< of messages and of gradients
  std::vector<Work> pulls_;      ///< by chunk
  std::size_t awaited_ = 0;      ///< chunks from here on have arrived
  Work answered_;
  std::int64_t waited_ns_ = 0;    ///< for parameters, in this step's forward passes
  std::int64_t backward_ns_ = 0;  ///< of the last backward pass
};

}  // namespace stratagem
