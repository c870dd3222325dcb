#include "strategy/ps/protocol/transport.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/remote_memory.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

using Transport = PsConfig::Transport;

/// Messages, with a copy on both sides.
class TwoSided final : public PsTransport {
 public:
  TwoSided(PsPlan const& ps, StrategyParts const& parts)
      : ps_(ps), communicator_(parts.world.all()) {
    auto const server = ps.placement.seat_of(communicator_.rank()).server;
    if (server < 0) return;
    auto const shard = plan().shards[static_cast<std::size_t>(server)];
    memory_ = make_store_memory(ps.policy, parts.optimizer, ps.workers(),
                                parts.allocate(gpu::MemoryCategory::parameters, shard));
    if (!codes()) return;
    gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, {});
    for (int worker = 0; worker < ps.workers(); ++worker)
      codes_.push_back(at::zeros({ps.code_bytes(shard)}, at::kByte));
  }

  Work push(at::Tensor const& gradient, ServerChunk const& chunk) override {
    return communicator_.send(gradient, ps_.owner_of(chunk), chunk_tag(chunk.index));
  }
  Work pull(at::Tensor const& parameters, ServerChunk const& chunk) override {
    return communicator_.receive(parameters, ps_.owner_of(chunk), chunk_tag(chunk.index));
  }
  StoreMemory const& memory() const override { return memory_; }
  at::Tensor code(int worker, ServerChunk const& chunk) const override {
    return codes_[static_cast<std::size_t>(worker)].narrow(0, ps_.code_bytes(chunk.offset),
                                                           ps_.code_bytes(chunk.range.size()));
  }
  Work receive(int worker, ServerChunk const& chunk) override {
    return communicator_.receive(
        codes() ? code(worker, chunk) : in_shard(memory_.slot(worker), chunk),
        ps_.placement.rank_of_worker(worker), chunk_tag(chunk.index));
  }
  Work send(int worker, ServerChunk const& chunk) override {
    return communicator_.send(in_shard(memory_.outgoing_to(worker), chunk),
                              ps_.placement.rank_of_worker(worker), chunk_tag(chunk.index));
  }

 private:
  ServerPlan const& plan() const { return ps_.servers; }
  bool codes() const { return ps_.config.compression.on(); }

  PsPlan ps_;
  Communicator& communicator_;
  StoreMemory memory_;
  std::vector<at::Tensor> codes_;  ///< by worker, of the shard
};

/// Workers put gradients into their slots of a server's memory and get parameters from it. Servers,
/// which look for messages all the time, are the only ranks whose memory is accessed. It holds the
/// workers' slots, or the codes of their gradients, and what goes out to each of them or to all, a
/// shard each.
class Rma final : public PsTransport {
 public:
  Rma(PsPlan const& ps, StrategyParts const& parts)
      : ps_(ps),
        worker_(ps.placement.seat_of(parts.world.all().rank()).worker),
        outgoing_(ps.policy.asynchronous() ? ps.workers() : 1) {
    auto const server = ps.placement.seat_of(parts.world.all().rank()).server;
    auto const shard = server < 0 ? 0 : plan().shards[static_cast<std::size_t>(server)];
    auto const type = master_type(parts.precision.compute);
    pushed_ = codes()
                  ? parts.world.all().share_memory(ps_.workers() * ps_.code_bytes(shard), at::kByte)
                  : parts.world.all().share_memory(ps_.workers() * shard, type);
    pulled_ = parts.world.all().share_memory(outgoing_ * shard, type);
    if (server < 0) return;
    auto const part = [&](at::Tensor const& whole, int number) {
      return whole.narrow(0, number * shard, shard);
    };
    auto const slots = codes()
                           ? parts.allocate(gpu::MemoryCategory::gradients, ps_.workers() * shard)
                           : pushed_->local();
    for (int worker = 0; worker < ps_.workers(); ++worker)
      memory_.slots.push_back(part(slots, worker));
    for (int i = 0; i < outgoing_; ++i) memory_.outgoing.push_back(part(pulled_->local(), i));
    memory_.parameters = sends_parameters(ps.policy, parts.optimizer)
                             ? memory_.outgoing.front()
                             : parts.allocate(gpu::MemoryCategory::parameters, shard);
  }

  Work push(at::Tensor const& gradient, ServerChunk const& chunk) override {
    return pushed_->put(gradient, ps_.owner_of(chunk),
                        codes() ? ps_.code_bytes(place(worker_, chunk)) : place(worker_, chunk),
                        chunk_tag(chunk.index));
  }
  Work pull(at::Tensor const& parameters, ServerChunk const& chunk) override {
    return pulled_->get(parameters, ps_.owner_of(chunk), place(outgoing_ > 1 ? worker_ : 0, chunk),
                        chunk_tag(chunk.index));
  }
  StoreMemory const& memory() const override { return memory_; }
  at::Tensor code(int worker, ServerChunk const& chunk) const override {
    return pushed_->local().narrow(0, ps_.code_bytes(place(worker, chunk)),
                                   ps_.code_bytes(chunk.range.size()));
  }
  Work receive(int worker, ServerChunk const& chunk) override {
    return pushed_->await_put(ps_.placement.rank_of_worker(worker), chunk_tag(chunk.index));
  }
  Work send(int worker, ServerChunk const& chunk) override {
    auto const element_size = static_cast<std::int64_t>(pulled_->local().element_size());
    return pulled_->offer(ps_.placement.rank_of_worker(worker), chunk_tag(chunk.index),
                          chunk.range.size() * element_size);
  }

 private:
  ServerPlan const& plan() const { return ps_.servers; }
  bool codes() const { return ps_.config.compression.on(); }
  /// Of a chunk in the n-th shard of its server's memory.
  std::int64_t place(int number, ServerChunk const& chunk) const {
    return number * plan().shards[static_cast<std::size_t>(chunk.server)] + chunk.offset;
  }

  PsPlan ps_;
  int worker_;
  int outgoing_;  ///< shards that workers get parameters from
  std::unique_ptr<RemoteMemory> pushed_, pulled_;
  StoreMemory memory_;
};

/// Seconds of a push and a pull of the first chunk between its server and the first worker, who
/// alone knows them; 0 elsewhere.
double measure(PsTransport& transport, PsPlan const& ps, StrategyParts const& parts) {
  constexpr int repeats = 5;
  auto const& chunk = ps.servers.chunks.front();
  auto const rank = parts.world.all().rank();
  if (rank == ps.owner_of(chunk)) {
    for (int i = 0; i < repeats; ++i) {
      transport.receive(0, chunk).wait_on_host();
      transport.send(0, chunk).wait_on_host();
    }
  }
  if (rank != ps.placement.rank_of_worker(0)) return 0;
  auto const parameters = parts.allocate(gpu::MemoryCategory::workspace, chunk.range.size());
  auto const gradient =
      ps.config.compression.on()
          ? parts.world.all().allocate(ps.code_bytes(chunk.range.size()), at::kByte)
          : at::empty_like(parameters);
  auto best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < repeats; ++i) {
    auto const begin = monotonic_ns();
    transport.push(gradient, chunk).wait_on_host();
    transport.pull(parameters, chunk).wait_on_host();
    best = std::min(best, monotonic_ns() - begin);
  }
  return static_cast<double>(best) * 1e-9;
}

std::unique_ptr<PsTransport> choose(PsPlan const& plan, StrategyParts const& parts) {
  std::unique_ptr<PsTransport> two_sided = std::make_unique<TwoSided>(plan, parts), rma;
  auto const tell = [&](std::string const& text) {
    parts.recorder.event(trace::Severity::info, "transport", text);
  };
  try {
    rma = std::make_unique<Rma>(plan, parts);
  } catch (AgreedError const& failure) {
    tell(str("two_sided: ", failure.what()));
    return two_sided;
  }
  auto const times = at::zeros({2}, at::kDouble);
  auto* seconds = times.data_ptr<double>();
  seconds[0] = measure(*two_sided, plan, parts);
  seconds[1] = measure(*rma, plan, parts);
  parts.world.all().all_reduce(times).wait_on_host();
  bool const rma_wins = seconds[1] < seconds[0];
  tell(str(rma_wins ? "rma" : "two_sided", ": push and pull of a chunk took ",
           format_number(1e3 * seconds[1], 3), " ms by rma, ", format_number(1e3 * seconds[0], 3),
           " ms by messages"));
  return rma_wins ? std::move(rma) : std::move(two_sided);
}

bool allows_rma(ServerPolicy const& policy) {
  return policy.delay == 0 && policy.always_pulls();
}

}  // namespace

void check_transport(PsPlan const& plan) {
  auto const& policy = plan.policy;
  if (plan.config.transport != Transport::rma || allows_rma(policy)) return;
  auto const* const other = policy.delay > 0         ? "a delay"
                            : policy.cached_reads    ? "advanced.cached_reads"
                            : policy.pull_at_lag > 0 ? "advanced.pull_at_lag"
                                                     : "advanced.pull_every";
  throw Error(ExitCode::usage, str("strategy.transport: rma together with ", other),
              "workers would push again before they know that their last gradient was used",
              "take strategy.transport: two_sided");
}

std::unique_ptr<PsTransport> make_transport(PsPlan const& plan, StrategyParts const& parts) {
  auto const wanted = plan.config.transport;
  if (wanted == Transport::rma) return std::make_unique<Rma>(plan, parts);
  if (wanted == Transport::automatic && allows_rma(plan.policy)) return choose(plan, parts);
  return std::make_unique<TwoSided>(plan, parts);
}

}  // namespace stratagem
