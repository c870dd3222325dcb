#include <algorithm>
#include <deque>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "base/console/table.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/ps/async_server.hpp"
#include "strategy/ps/async_worker.hpp"
#include "strategy/ps/offline/replay.hpp"
#include "strategy/ps/offline/simulation.hpp"
#include "strategy/ps/policy/pull_schedule.hpp"
#include "strategy/ps/sync_server.hpp"
#include "strategy/ps/sync_worker.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {
namespace {

/// When asynchronous workers that go on at the same speed pull.
class EvenSchedule {
 public:
  EvenSchedule(ServerPolicy const& policy, int workers)
      : pace_(policy), staleness_(policy.staleness), workers_(workers) {}

  bool next() {
    bool const pulls = pace_.next();
    ++age_;
    pace_.learn(age_ * workers_ - 1);
    if (!pulls) return false;
    pace_.allow(staleness_);
    age_ = 0;
    return true;
  }

 private:
  PullSchedule pace_;
  std::int64_t staleness_;
  int workers_;
  std::int64_t age_ = 0;  ///< pushes since the last pull
};

/// A chunk is pushed when its blocks are back, and awaited by the first block that needs it, in the
/// next forward pass or `delay` passes later; sync servers serve a chunk when it has come from all
/// workers, others all chunks of a worker when they have come: PsWorker::step() on lanes.
class PsStep {
 public:
  PsStep(PsPlan const& plan, StepParts const& parts)
      : parts_(parts),
        ps_(plan),
        plan_(plan.servers),
        policy_(plan.policy),
        speed_(parts.costs.codec(plan.config.compression)),
        pace_(policy_, ps_.workers()),
        arrivals_(static_cast<std::size_t>(policy_.delay) + 1,
                  std::vector<double>(plan_.chunks.size())),
        free_(plan_.shards.size()) {}

  void run(Lanes& lanes) {
    for (int push = 0; push < policy_.pushes; ++push)
      for (int micro = 1; micro <= parts_.plan.shares.micro_batches; ++micro) {
        forward(lanes);  // but for the first all is there
        backward(lanes, micro == parts_.plan.shares.micro_batches);
      }
  }

  /// Seconds of one step in which the busiest server serves what all workers push.
  double busiest_server() const {
    std::vector<double> busy(plan_.shards.size());
    for (auto const& chunk : plan_.chunks)
      busy[static_cast<std::size_t>(chunk.server)] += ps_.workers() * served(chunk);
    return policy_.pushes * std::ranges::max(busy);
  }
  /// Seconds of cores for servers and, on the side of the workers, messages of one step.
  double processor_s() const {
    auto const pulls = pulls_of_push();
    double each = 0;
    for (auto const& chunk : plan_.chunks)
      each += served(chunk) + pushed(chunk).core_s + pulls * message(chunk).core_s;
    return policy_.pushes * ps_.workers() * each;
  }

 private:
  /// Of parameters, and of gradients, which may be coded.
  Transfer message(ServerChunk const& chunk) const { return parts_.message(chunk.range.size()); }
  Transfer pushed(ServerChunk const& chunk) const {
    auto const bytes = ps_.code_bytes(chunk.range.size());
    return bytes > 0 ? parts_.costs.message.at(static_cast<double>(bytes)) : message(chunk);
  }
  double served(ServerChunk const& chunk) const {
    return parts_.costs.push.at(static_cast<double>(chunk.range.size())) +
           speed_.decode * bytes(chunk);
  }
  double bytes(ServerChunk const& chunk) const {
    return static_cast<double>(chunk.range.size() * parts_.plan.element_size);
  }

  void forward(Lanes& lanes) {
    auto awaited = plan_.chunks.size();
    for (int block = 0; block < parts_.blocks(); ++block) {
      for (; awaited > 0 && plan_.chunks[awaited - 1].range.begin < parts_.layout.range(block).end;
           --awaited)
        lanes.await(arrivals_.front()[awaited - 1]);
      lanes.compute(parts_.forward_of_block());
    }
  }

  void backward(Lanes& lanes, bool pushes) {
    if (!pushes) return lanes.compute(parts_.costs.backward_s);
    bool const pulls = !policy_.asynchronous() || pace_.next();
    arrivals_.pop_front();
    arrivals_.emplace_back(plan_.chunks.size());
    std::size_t next = 0;
    for (int block = parts_.blocks() - 1; block >= 0; --block) {
      lanes.compute(parts_.backward_of_block());
      for (; next < plan_.chunks.size() &&
             plan_.chunks[next].range.begin >= parts_.layout.range(block).begin;
           ++next)
        push(plan_.chunks[next], lanes, pulls);
    }
    if (waits_for_all()) serve_all(pulls);
  }

  double pulls_of_push() const {
    if (!policy_.asynchronous()) return 1;
    EvenSchedule pace(policy_, ps_.workers());
    for (int i = 0; i < steps_to_settle; ++i) pace.next();
    int pulls = 0;
    for (int i = 0; i < mean_over_steps; ++i) pulls += pace.next() ? 1 : 0;
    return static_cast<double>(pulls) / mean_over_steps;
  }

  /// A server treats a push when all of it has come.
  bool waits_for_all() const {
    return policy_.asynchronous() && policy_.pulls == ServerPolicy::Pulls::consistent;
  }

  void push(ServerChunk const& chunk, Lanes& lanes, bool pulls) {
    lanes.compute(speed_.encode * bytes(chunk));
    auto& free = free_of(chunk);
    free = std::max(free, lanes.communicate(pushed(chunk)));
    if (waits_for_all()) return;
    free += (policy_.asynchronous() ? 1 : ps_.workers()) * served(chunk);
    if (pulls) arrival_of(chunk) = free + message(chunk).seconds;
  }

  /// A worker's chunks, which have all come; the first block's are the first to go back.
  void serve_all(bool pulls) {
    for (auto const& chunk : plan_.chunks) free_of(chunk) += served(chunk);
    if (!pulls) return;
    auto sent = free_;
    for (auto chunk = plan_.chunks.rbegin(); chunk != plan_.chunks.rend(); ++chunk)
      arrival_of(*chunk) = sent[static_cast<std::size_t>(chunk->server)] += message(*chunk).seconds;
  }

  double& arrival_of(ServerChunk const& chunk) {
    return arrivals_.back()[static_cast<std::size_t>(chunk.index)];
  }
  double& free_of(ServerChunk const& chunk) {
    return free_[static_cast<std::size_t>(chunk.server)];
  }

  StepParts const& parts_;
  PsPlan const& ps_;
  ServerPlan const& plan_;
  ServerPolicy const& policy_;
  CodecSpeed speed_;
  EvenSchedule pace_;
  std::deque<std::vector<double>> arrivals_;  ///< of chunks, by push; the next awaits the first
  std::vector<double> free_;                  ///< when each server is
};

/// Servers are on the host, so that workers may be refused alone.
void refuse_codes_on_any_gpu(StrategyParts const& parts) {
  std::optional<Error> own;
  try {
    refuse_codes_on_gpu(parts.device);
  } catch (AgreedError const& refused) {
    own = refused;
  }
  agree(parts.world.all(), own);
}

class PlannedPs final : public PlannedAs<PsPlan> {
 public:
  PlannedPs(PsPlan plan, std::int64_t element_size, std::vector<std::int64_t> server_bytes)
      : PlannedAs(std::move(plan)),
        element_size_(element_size),
        server_bytes_(std::move(server_bytes)) {}

  Member make(StrategyParts const& parts) const override {
    if (plan_.config.compression.on()) refuse_codes_on_any_gpu(parts);
    bool const serves = plan_.placement.serves(parts.world.all().rank());
    if (plan_.policy.asynchronous()) {
      if (serves) return {.server = std::make_unique<AsyncPsServer>(plan_, parts)};
      return {.strategy = std::make_unique<AsyncPsWorker>(plan_, parts)};
    }
    if (serves) return {.server = std::make_unique<SyncPsServer>(plan_, parts)};
    return {.strategy = std::make_unique<SyncPsWorker>(plan_, parts)};
  }

  StepTime time(StepParts const& parts) const override {
    PsStep step(plan_, parts);
    auto const found = steady(parts, [&](Lanes& lanes) { step.run(lanes); });
    return with_cores(std::max(found.path_s, step.busiest_server()), found.compute_s,
                      step.processor_s(), plan_.placement.ranks(), parts.plan.awake_ranks(),
                      parts.costs);
  }

  std::string tables(Model const&) const override {
    auto const& servers = plan_.servers;
    Table table({{"server"}, {"rank"}, {"chunks"}, {"parameters"}, {"memory"}});
    for (int server = 0; server < servers.servers(); ++server) {
      auto const i = static_cast<std::size_t>(server);
      table.add_row({std::to_string(server), std::to_string(plan_.placement.rank_of_server(server)),
                     std::to_string(servers.chunks_of(server).size()),
                     bytes_text(servers.loads[i] * element_size_), bytes_text(server_bytes_[i])});
    }
    return table.render() +
           str("largest over mean load: ", format_number(servers.imbalance(), 3), "\n");
  }

  void add_to(nlohmann::json& document) const override {
    auto const& servers = plan_.servers;
    document["ps"] = {{"server_ranks", plan_.placement.server_ranks()},
                      {"chunks", servers.chunks.size()},
                      {"elements", servers.loads},
                      {"imbalance", servers.imbalance()},
                      {"server_B", server_bytes_}};
  }

 private:
  std::int64_t element_size_;               ///< of parameters [B]
  std::vector<std::int64_t> server_bytes_;  ///< lasting, of each server
};

class OfflinePs final : public PlannedOffline {
 public:
  explicit OfflinePs(PsPlan plan) : plan_(std::move(plan)) {}

  std::unique_ptr<Simulation> simulate(ClusterModel const& cluster, StrategyParts const& parts,
                                       SimulationInputs inputs) const override {
    auto with_slow = cluster;
    with_slow.slow_worker = plan_.config.slow_worker;
    with_slow.slow = plan_.config.slow;
    return std::make_unique<PsSimulation>(plan_, with_slow, parts, std::move(inputs));
  }

  std::unique_ptr<Replay> replay(StrategyParts const& parts,
                                 std::vector<trace::RankTrace> const& servers) const override {
    std::vector<std::vector<RecordedPush>> pushes;
    for (auto const& server : servers) pushes.push_back(recorded_pushes(server));
    return std::make_unique<PsReplay>(plan_, parts, std::move(pushes));
  }

 private:
  PsPlan plan_;
};

char const* name_of(ServerPolicy::Gate gate) {
  static constexpr std::array names{"none", "bsp", "ssp", "softsync", "backup"};
  return names.at(static_cast<std::size_t>(gate));
}
char const* name_of(ServerPolicy::Momentum momentum) {
  static constexpr std::array names{"shared", "per_worker", "look_ahead"};
  return names.at(static_cast<std::size_t>(momentum));
}
char const* name_of(ServerPolicy::Weight weight) {
  static constexpr std::array names{"one", "inverse_lag", "inverse_gap"};
  return names.at(static_cast<std::size_t>(weight));
}
char const* name_of(ServerPolicy::OverCap over_cap) {
  return over_cap == ServerPolicy::OverCap::drop ? "drop" : "attenuate";
}
char const* name_of(ServerPolicy::Pulls pulls) {
  return pulls == ServerPolicy::Pulls::consistent ? "consistent" : "chunkwise";
}

/// How a parameter server treats gradients, where that is not what every synchronous training does;
/// named as the keys are that choose it, whether they or a mode have chosen it.
std::map<std::string, std::string> choices_of(PsPlan const& plan) {
  auto const& config = plan.config;
  auto const& policy = plan.policy;
  std::map<std::string, std::string> facts;
  ServerPolicy const synchronous{.gate = ServerPolicy::Gate::bsp};
  auto const add = [&](char const* key, auto part) {
    if (policy.*part == synchronous.*part) return;
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(policy.*part)>>)
      facts[path_of_part(key)] = name_of(policy.*part);
    else
      facts[path_of_part(key)] = shortest(static_cast<double>(policy.*part));
  };
  add("gate", &ServerPolicy::gate);
  add("staleness", &ServerPolicy::staleness);
  if (policy.gate == ServerPolicy::Gate::backup)
    facts["strategy.backup"] = std::to_string(plan.workers() - policy.count);
  else
    add("count", &ServerPolicy::count);
  add("lag_cap", &ServerPolicy::lag_cap);
  add("over_cap", &ServerPolicy::over_cap);
  add("weight", &ServerPolicy::weight);
  add("dc_lambda", &ServerPolicy::correction);
  if (policy.correction_decay) facts[path_of_part("dc_decay")] = shortest(*policy.correction_decay);
  add("momentum", &ServerPolicy::momentum);
  add("delay", &ServerPolicy::delay);
  add("pushes", &ServerPolicy::pushes);
  add("pull_every", &ServerPolicy::pull_every);
  add("pull_at_lag", &ServerPolicy::pull_at_lag);
  if (policy.cached_reads) facts[path_of_part("cached_reads")] = "true";
  add("pulls", &ServerPolicy::pulls);
  add("warm_start", &ServerPolicy::warm_start);
  if (!policy.asynchronous()) return facts;
  // What has versions of its own: each server, and with pulls chunkwise each chunk.
  facts["strategy.servers"] = std::to_string(config.servers);
  if (policy.pulls == ServerPolicy::Pulls::chunkwise)
    facts["strategy.chunk_mb"] = shortest(config.chunk_mb);
  return facts;
}

/// Mode sync on the same ranks, whose steps a warm start's are like.
PsConfig synchronous(PsConfig const& config) {
  return {.servers = config.servers,
          .server_ranks = config.server_ranks,
          .listed_ranks = config.listed_ranks,
          .chunk_mb = config.chunk_mb,
          .transport = config.transport,
          .compression = config.compression,
          .micro_batches = config.micro_batches};
}

}  // namespace

StrategyPlan plan_of(PsConfig const& config, PlanInput const& input) {
  auto plan = plan_of_replicas(input);
  auto ps = plan_ps(config, input.layout, input.ranks, plan.element_size);
  check_ps(ps, input.optimizer);
  auto const& policy = ps.policy;
  plan.placement = ps.placement;
  plan.saved.holders = {plan.placement.rank_of_worker(0)};
  plan.shares.workers = ps.workers();
  if (policy.asynchronous()) plan.results = Results::of_pushes;
  plan.shares.pushes = policy.pushes;
  plan.shares.micro_batches = config.micro_batches;
  plan.memory[gpu::MemoryCategory::optimizer] = 0;
  for (auto const shard : ps.servers.shards) {
    auto use =
        server_memory(policy, input.optimizer, shard, plan.shares.workers, plan.element_size);
    use[gpu::MemoryCategory::gradients] += plan.shares.workers * ps.code_bytes(shard);
    plan.servers.bytes.push_back(use.total());
    if (use.total() > plan.servers.memory.total()) plan.servers.memory = use;
  }
  plan.saved.states = static_cast<int>(policy.state_kinds().size());
  auto const& compression = config.compression;
  refuse_codes_without_blocks(compression, PsConfig::name);
  auto const pushed = input.layout.size() * plan.element_size;
  auto const coded = ps.code_bytes(input.layout.size());
  plan.memory[gpu::MemoryCategory::gradients] += coded + (compression.error_feedback ? pushed : 0);
  plan.traffic.bytes_sent = compression.on() ? coded : pushed;
  plan.traffic.most_bytes_sent =
      std::max(plan.traffic.bytes_sent,
               std::ranges::max(ps.servers.loads) * plan.element_size * plan.shares.workers);
  plan.numbers.order_of_sums =
      (plan.synchronous() ? "" : "asynchronous, ") + order_of_sums(config.micro_batches);
  plan.numbers.of_serial = config.mode == PsMode::sync;
  plan.numbers.choices = choices_of(ps);
  plan_compression(compression, SumCode::plain, input, plan);
  plan.traffic.operations = {BenchOperation::send_receive};
  plan.servers.work = policy.work();
  plan.servers.elements = std::ranges::max(ps.servers.shards);
  plan.warm_start.steps = config.warm_start;
  if (config.warm_start > 0)
    plan.warm_start.like =
        std::make_shared<StrategyPlan const>(plan_of(synchronous(config), input));
  plan.hashes.emplace_back("placement", ps.placement.hash());
  plan.hashes.emplace_back("servers", ps.servers.hash());
  plan.servers.offline = std::make_shared<OfflinePs const>(ps);
  plan.strategy = std::make_shared<PlannedPs>(std::move(ps), plan.element_size, plan.servers.bytes);
  return plan;
}

}  // namespace stratagem
