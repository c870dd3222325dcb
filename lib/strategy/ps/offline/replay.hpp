#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "strategy/offline.hpp"
#include "strategy/ps/offline/local_pass.hpp"
#include "strategy/ps/own_updates.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/protocol/push_code.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "trace/rank_trace.hpp"

namespace stratagem {

/// A push as a server recorded it.
struct RecordedPush {
  int worker = 0;
  std::int64_t round = 0;
  std::int64_t step = 0;
  std::int64_t first_slot = 0;  ///< of its samples in the global batch
  std::int64_t chunk = -1;      ///< of these versions; -1: all of the server's
  std::int64_t base_version = 0, applied_version = 0;
  PushScale scale;
  double loss_scale = 1;
  bool dropped = false;
  bool overflowed = false;  ///< the reason, which its worker knows
  bool pulled = true;       ///< the worker pulled parameters after it
};

/// The pushes of an asynchronous server, in the order in which it treated them.
std::vector<RecordedPush> recorded_pushes(trace::RankTrace const& server);

/// An asynchronous training of any number of ranks, made again in this process alone: the passes
/// and updates that the servers' records tell of, in the order that these demand. Every bit of the
/// parameters is that of the training. What happens on one server is ordered by its record; a
/// gradient needs what each server handed to its worker before.
class PsReplay final : public Replay {
 public:
  /// `pushes`: by server.
  PsReplay(PsPlan const& plan, StrategyParts const& parts,
           std::vector<std::vector<RecordedPush>> pushes);

  void load(TensorMap const& tensors) override;
  std::int64_t pushes() const override;
  NamedTensors run(BatchOf const& batch_of) override;

 private:
  /// A server, or a chunk that has versions of its own; its records, and how far they are repeated.
  struct Server {
    std::vector<ServerChunk> chunks;  ///< where they lie in the store
    ParameterStore store;
    std::unique_ptr<OwnUpdates> own;  ///< of its part of what workers have cached
    std::vector<RecordedPush> pushes;
    std::size_t next = 0, round_end = 0;  ///< in pushes
    std::int64_t version = 0;
    double lr = 0;  ///< of the last push that was applied
    struct Worker {
      std::vector<std::size_t> pushes;  ///< of this round, places in the server's
      std::size_t applied = 0;          ///< of these
      std::size_t base = 0;             ///< the first of these with what was handed out last
      std::deque<at::Tensor> arrived;   ///< gradients not yet applied
    };
    std::vector<Worker> workers;

    /// Place in `of.pushes` of the last that is computed with what was handed out last.
    std::size_t last_of_base(Worker const& of) const;
  };

  bool begin_round();
  /// Hands parameters to the workers whose next push is based on the present version.
  void hand_out(Server& server);
  /// The worker's next gradient, once every server has handed out what it needs.
  bool compute(int worker, BatchOf const& batch_of);
  bool apply_next(Server& server);
  void apply(Server& server, RecordedPush const& push);
  int workers() const { return static_cast<int>(computed_.size()); }

  StrategyParts parts_;
  ServerPolicy policy_;
  LocalPass pass_;
  std::optional<PushCode> code_;
  std::vector<Server> servers_;
  std::vector<Buffers> buffers_;       ///< by worker
  std::vector<at::Tensor> residuals_;  ///< by worker, where there is a code
  std::vector<std::size_t> computed_;  ///< gradients of this round, by worker
  std::int64_t round_ = -1;
};

}  // namespace stratagem
