#include "strategy/gossip/gossip_plan.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/console/table.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "strategy/gossip/gossip.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/shared/worker_plan.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {
namespace {

constexpr int most_posted = 2;  // receives: one is added while the next arrives

/// The steps after which the graph repeats, as Gossip::step() makes them on rank 0, which no rank
/// sends more than.
class GossipSteps {
 public:
  GossipSteps(GossipPlan const& plan, StepParts const& parts) : plan_(plan), parts_(parts) {}

  int count() const { return plan_.neighbours.period() * plan_.config.mix_every; }

  void run(Lanes& lanes) const {
    for (int step = 0; step < count(); ++step) {
      for (int worker = 0; worker < plan_.workers_of_rank(); ++worker) {
        for (int pass = 0; pass < plan_.config.micro_batches; ++pass) {
          lanes.compute(parts_.costs.forward_s);
          for (int block = 0; block < parts_.blocks(); ++block)
            lanes.compute(parts_.backward_of_block());
        }
        lanes.compute(parts_.costs.optimizer_s);
      }
      if (plan_.mixes_after(step)) mix(lanes, plan_.mixing_of(step));
    }
  }

 private:
  void mix(Lanes& lanes, std::int64_t mixing) const {
    std::vector<double> ends;
    for (int i = 0; i < plan_.sent_by(0, mixing); ++i)
      ends.push_back(lanes.communicate(parts_.message(parts_.layout.size())));
    for (double const end : ends) lanes.await(end);
  }

  GossipPlan const& plan_;
  StepParts const& parts_;
};

class PlannedGossip final : public PlannedAs<GossipPlan> {
 public:
  using PlannedAs::PlannedAs;

  Member make(StrategyParts const& parts) const override {
    return {.strategy = std::make_unique<Gossip>(plan_, parts)};
  }

  StepTime time(StepParts const& parts) const override {
    GossipSteps const steps(plan_, parts);
    auto const all = steady(parts, [&](Lanes& lanes) { steps.run(lanes); });
    return time_of_collectives(all / steps.count(), parts);
  }

  std::string tables(Model const& /*model*/) const override {
    auto const& config = plan_.config;
    Table table({{"gossip", Align::left}, {"", Align::left}});
    table.add_row(
        {"workers", str(plan_.workers(), ", ", plan_.workers_of_rank(), " on each rank")});
    table.add_row({"graph", str(name_of(config.graph), "; all have heard of all after ",
                                plan_.neighbours.reach(), " mixings")});
    table.add_row(
        {"mixed", str(config.push_sum ? "parameters and weights (push-sum)" : "parameters",
                      config.mix_every == 1 ? ", in every step"
                                            : str(", every ", config.mix_every, " steps"))});
    table.add_row({"a message", bytes_text(plan_.message_bytes)});
    return table.render();
  }

  void add_to(nlohmann::json& document) const override {
    document["gossip"] = {
        {"workers", plan_.workers()},           {"workers_of_rank", plan_.workers_of_rank()},
        {"graph", name_of(plan_.config.graph)}, {"push_sum", plan_.config.push_sum},
        {"mix_every", plan_.config.mix_every},  {"reach", plan_.neighbours.reach()},
        {"message_B", plan_.message_bytes}};
  }
};

void check(GossipPlan const& plan, PlanInput const& input) {
  refuse_what_needs_all_gradients(GossipConfig::name, input);
  if (!plan.config.push_sum && !plan.neighbours.doubly_stochastic())
    refuse_with(GossipConfig::name,
                str("strategy.graph: ", name_of(plan.config.graph), " without push_sum"),
                "the rows of its matrix do not add up to 1, so the mean of the workers would drift",
                "set strategy.push_sum: true, or take another graph");
}

/// Messages that a rank sends in a mixing, over all mixings that differ.
std::int64_t sent_in_period(GossipPlan const& plan, int rank) {
  std::int64_t messages = 0;
  for (int mixing = 0; mixing < plan.neighbours.period(); ++mixing)
    messages += plan.sent_by(rank, mixing);
  return messages;
}

void set_bytes(StrategyPlan& plan, GossipPlan const& gossip) {
  std::int64_t most = 0, all = 0;
  for (int rank = 0; rank < gossip.ranks; ++rank) {
    auto const messages = sent_in_period(gossip, rank);
    most = std::max(most, messages);
    all += messages;
  }
  auto const steps = gossip.neighbours.period() * gossip.config.mix_every;
  plan.traffic.bytes_sent = all * gossip.message_bytes / (steps * gossip.ranks);
  plan.traffic.most_bytes_sent = most * gossip.message_bytes / steps;
}

/// What holds only where there are several workers.
void set_apart(StrategyPlan& plan, GossipPlan const& gossip) {
  auto const& config = gossip.config;
  plan.sync_every = gossip.neighbours.reach() * config.mix_every;
  plan.results = Results::at_meeting;
  plan.saved.copies = gossip.workers() + 1;
  plan.numbers.of_serial = false;
  plan.numbers.choices = {{"strategy.graph", std::string(name_of(config.graph))},
                          {"strategy.push_sum", config.push_sum ? "true" : "false"},
                          {"strategy.mix_every", std::to_string(config.mix_every)}};
}

}  // namespace

bool GossipPlan::heard_on(int rank, int sender, std::int64_t mixing) const {
  auto const first = rank * workers_of_rank();
  for (int worker = first; worker < first + workers_of_rank(); ++worker)
    if (neighbours.hears(worker, sender, mixing)) return true;
  return false;
}

int GossipPlan::messages(int from, int to, std::int64_t mixing) const {
  if (from == to) return 0;
  int heard = 0;
  auto const first = from * workers_of_rank();
  for (int sender = first; sender < first + workers_of_rank(); ++sender)
    heard += heard_on(to, sender, mixing) ? 1 : 0;
  return heard;
}

int GossipPlan::sent_by(int rank, std::int64_t mixing) const {
  int sum = 0;
  for (int other = 0; other < ranks; ++other) sum += messages(rank, other, mixing);
  return sum;
}

int GossipPlan::received_by(int rank, std::int64_t mixing) const {
  int sum = 0;
  for (int other = 0; other < ranks; ++other) sum += messages(other, rank, mixing);
  return sum;
}

StrategyPlan plan_of(GossipConfig const& config, PlanInput const& input) {
  auto plan = plan_of_replicas(input);
  GossipPlan gossip{
      .config = config,
      .neighbours = {config.graph, dealt_workers(GossipConfig::name, config.workers, input.ranks)},
      .ranks = input.ranks};
  check(gossip, input);
  gossip.message_bytes = (input.layout.size() + Mixer::tail) * plan.element_size;
  for (int rank = 0; rank < input.ranks; ++rank)
    for (int mixing = 0; mixing < gossip.neighbours.period(); ++mixing)
      gossip.inbox =
          std::max(gossip.inbox, std::min(gossip.received_by(rank, mixing), most_posted));
  auto const own = gossip.workers_of_rank();
  plan.shares.workers = gossip.workers();
  plan.shares.micro_batches = config.micro_batches;
  plan.memory = memory_of_workers(plan, own, own);
  plan.memory[gpu::MemoryCategory::gradients] +=
      own * Mixer::tail * plan.element_size + gossip.inbox * gossip.message_bytes;
  plan.numbers.order_of_sums = order_of_sums(config.micro_batches);
  plan.traffic.operations = {BenchOperation::send_receive};
  plan.hashes.emplace_back("workers and graph", Hash()
                                                    .add(std::uint64_t(gossip.workers()))
                                                    .add(name_of(config.graph))
                                                    .add(std::uint64_t(config.push_sum))
                                                    .add(std::uint64_t(config.mix_every))
                                                    .value());
  set_bytes(plan, gossip);
  if (gossip.workers() > 1) set_apart(plan, gossip);
  plan.strategy = std::make_shared<PlannedGossip>(gossip);
  return plan;
}

}  // namespace stratagem
