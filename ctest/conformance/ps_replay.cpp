#include "conformance/ps_replay.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "strategy/cross_entropy.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/replica.hpp"
#include "trace/rank_trace.hpp"
#include "trace/schema.hpp"

namespace stratagem::test {
namespace {

/// A push as a server recorded it.
struct Push {
  int worker = 0;
  std::int64_t step = 0, first_slot = 0, base_version = 0;
  double weight = 1, lr = 0;
  bool dropped = false;
};

std::vector<Push> read_pushes(std::filesystem::path const& file) {
  auto const trace = trace::read_rank_trace(file);
  auto const& table = trace.table(trace::ps_table());
  std::vector<Push> pushes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(table.rows); ++i)
    pushes.push_back({.worker = static_cast<int>(table.integers("worker")[i]),
                      .step = table.integers("step")[i],
                      .first_slot = table.integers("first_slot")[i],
                      .base_version = table.integers("base_version")[i],
                      .weight = table.reals("weight")[i],
                      .lr = table.reals("lr")[i],
                      .dropped = table.integers("dropped")[i] != 0});
  return pushes;
}

/// One server's records, and how far they are repeated.
struct Server {
  std::vector<ServerChunk> own;
  ParameterStore store;
  std::vector<Push> pushes;
  std::size_t next = 0;
  std::int64_t version = 0;
  double lr = 0;             ///< of the last push
  std::vector<bool> handed;  ///< by worker: it has the parameters for its next push

  /// The worker's next push, null when there is none.
  Push const* next_of(int worker) const {
    for (auto i = next; i < pushes.size(); ++i)
      if (pushes[i].worker == worker) return &pushes[i];
    return nullptr;
  }
  /// Hands parameters to those whose next push is based on the present version.
  void hand_out() {
    for (int worker = 0; worker < static_cast<int>(handed.size()); ++worker) {
      auto const* push = next_of(worker);
      auto const w = static_cast<std::size_t>(worker);
      if (push == nullptr || handed[w] || push->base_version != version) continue;
      store.hand_out(worker, lr);
      handed[w] = true;
    }
  }
};

class Replay {
 public:
  Replay(Training const& training, int ranks, std::filesystem::path const& folder)
      : training_(training),
        model_(test_model(training.model)),
        replica_(model_, training.precision.compute, {}, training_seed),
        plan_(plan_servers(std::get<PsConfig>(training.strategy), replica_.layout(), ranks, 4)),
        gradients_(at::zeros_like(replica_.flat())),
        tape_(model_.blocks, training.recompute) {
    auto const policy = policy_of(std::get<PsConfig>(training.strategy), workers());
    for (int server = 0; server < static_cast<int>(plan_.shards.size()); ++server) {
      auto const shard = at::zeros({plan_.shards[static_cast<std::size_t>(server)]});
      auto const rank = plan_.roles.servers[static_cast<std::size_t>(server)];
      servers_.push_back({.own = plan_.chunks_of(server),
                          .store = {policy, training.optimizer, workers(), 1, shard},
                          .pushes = read_pushes(trace_of(folder, rank)),
                          .handed = std::vector<bool>(static_cast<std::size_t>(workers()))});
      for (auto const& chunk : servers_.back().own)
        in_shard(shard, chunk).copy_(in_flat(replica_.flat(), chunk));
      servers_.back().hand_out();
    }
    for (int worker = 0; worker < workers(); ++worker)
      buffers_.push_back(make_buffers(model_, {}, training.precision.compute));
    computed_.resize(static_cast<std::size_t>(workers()));
    for (int block = 0; block < tape_.blocks(); ++block)
      views_.push_back(views_of(gradients_, replica_.layout(), block));
  }

  NamedTensors run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int worker = 0; worker < workers(); ++worker) moved = compute(worker) || moved;
      for (auto& server : servers_) moved = apply_next(server) || moved;
    }
    for (auto const& server : servers_) {
      expects(server.next == server.pushes.size(), "every record can be repeated");
      for (auto const& chunk : server.own)
        in_flat(replica_.flat(), chunk).copy_(in_shard(server.store.parameters(), chunk));
    }
    return replica_.named(replica_.flat(), all_tensors);
  }

 private:
  int workers() const { return static_cast<int>(plan_.roles.workers.size()); }
  static at::Tensor in_flat(at::Tensor const& flat, ServerChunk const& chunk) {
    return flat.narrow(0, chunk.range.begin, chunk.range.size());
  }
  static at::Tensor in_shard(at::Tensor const& shard, ServerChunk const& chunk) {
    return shard.narrow(0, chunk.offset, chunk.range.size());
  }

  /// The worker's next gradient, once every server has handed out what it needs.
  bool compute(int worker) {
    auto const w = static_cast<std::size_t>(worker);
    if (computed_[w]) return false;
    for (auto const& server : servers_)
      if (!server.handed[w]) return false;
    for (auto const& server : servers_)
      for (auto const& chunk : server.own)
        in_flat(replica_.flat(), chunk).copy_(in_shard(server.store.handed(worker), chunk));
    auto const* push = servers_.front().next_of(worker);
    pass(training_batch(training_, push->step, push->first_slot, workers()), buffers_[w]);
    for (auto& server : servers_)
      for (auto const& chunk : server.own)
        in_shard(server.store.slot(worker), chunk).copy_(in_flat(gradients_, chunk));
    computed_[w] = static_cast<int>(servers_.size());
    return true;
  }

  void pass(Batch const& batch, Buffers const& buffers) {
    replica_.refresh({0, replica_.layout().size()});
    Context const context{.training = true,
                          .seed = training_seed,
                          .step = batch.step,
                          .first_slot = batch.first_slot};
    at::Tensor x = batch.images;
    for (int block = 0; block < tape_.blocks(); ++block)
      x = tape_.forward(
          block, x,
          {replica_.parameters(block), buffers[static_cast<std::size_t>(block)], context});
    auto gradient = cross_entropy(x, batch.labels).gradient;
    for (int block = tape_.blocks() - 1; block >= 0; --block)
      gradient =
          tape_.backward(block, gradient, views_[static_cast<std::size_t>(block)], Landing::store);
  }

  bool apply_next(Server& server) {
    if (server.next == server.pushes.size()) return false;
    auto const& push = server.pushes[server.next];
    auto const w = static_cast<std::size_t>(push.worker);
    if (computed_[w] == 0 || !server.handed[w]) return false;
    server.lr = push.lr;
    if (!push.dropped) {
      server.store.apply(push.worker, push.weight, push.lr);
      ++server.version;
    }
    server.handed[w] = false;
    --computed_[w];
    ++server.next;
    server.hand_out();
    return true;
  }

  Training training_;
  Model model_;
  Replica replica_;
  ServerPlan plan_;
  at::Tensor gradients_;
  std::vector<std::vector<at::Tensor>> views_;  ///< by block
  BlockTape tape_;
  std::vector<Server> servers_;
  std::vector<Buffers> buffers_;  ///< by worker
  std::vector<int> computed_;     ///< by worker: servers that are still to apply its gradient
};

}  // namespace

NamedTensors replay(Training const& training, int ranks, std::filesystem::path const& folder) {
  return Replay(training, ranks, folder).run();
}

}  // namespace stratagem::test
