#include "strategy/local/local_plan.hpp"

#include <nlohmann/json.hpp>

#include "base/console/table.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "strategy/local/local_sgd.hpp"
#include "strategy/local/outer_step.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/worker_plan.hpp"
#include "strategy/shared/worker_sum.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {
namespace {

/// The steps after which the same fragment is sent again, as LocalSgd::step() makes them.
class LocalSteps {
 public:
  LocalSteps(LocalPlan const& plan, StepParts const& parts) : plan_(plan), parts_(parts) {}

  int count() const { return plan_.apart() ? plan_.config.inner_steps : 1; }

  void run(Lanes& lanes) {
    for (int step = 0; step < count(); ++step) {
      for (int pass = 0; pass < plan_.workers_of_rank() * plan_.config.micro_batches; ++pass) {
        lanes.compute(parts_.costs.forward_s);
        for (int block = 0; block < parts_.blocks(); ++block)
          lanes.compute(parts_.backward_of_block());
      }
      if (plan_.apart())
        step_apart(lanes);
      else
        step_together(lanes);
    }
  }

 private:
  void step_together(Lanes& lanes) const {
    lanes.await(lanes.communicate(exchange(parts_.layout.size())));
    update(lanes);
  }

  void step_apart(Lanes& lanes) {
    update(lanes);
    ++made_;
    if (auto const range = plan_.fragments.sent_after(made_)) {
      arrival_ = lanes.communicate(exchange(range->size()));
      if (plan_.workers_of_rank() > 1) lanes.await(arrival_);
    }
    auto const range = plan_.fragments.taken_after(made_);
    if (!range) return;
    lanes.await(arrival_);
    if (plan_.has_outer_step()) lanes.compute(parts_.update_of(range->size()));
  }

  void update(Lanes& lanes) const {
    lanes.compute(plan_.replicas_of_rank() * parts_.costs.optimizer_s);
  }

  /// Where a rank plays several workers, it goes with the bytes.
  Transfer exchange(std::int64_t elements) const {
    return (plan_.workers_of_rank() + 1) / 2.0 * parts_.all_reduce(elements);
  }

  LocalPlan const& plan_;
  StepParts const& parts_;
  std::int64_t made_ = 0;  ///< steps, in all runs
  double arrival_ = 0;     ///< of what is under way
};

class PlannedLocal final : public PlannedAs<LocalPlan> {
 public:
  using PlannedAs::PlannedAs;

  Member make(StrategyParts const& parts) const override {
    return {.strategy = std::make_unique<LocalSgd>(plan_, parts)};
  }

  StepTime time(StepParts const& parts) const override {
    LocalSteps steps(plan_, parts);
    auto const all = steady(parts, [&](Lanes& lanes) { steps.run(lanes); });
    return time_of_collectives(all / steps.count(), parts);
  }

  std::string tables(Model const& /*model*/) const override {
    Table table({{"local", Align::left}, {"", Align::left}});
    table.add_row({"workers", str(plan_.workers, ", ", plan_.workers_of_rank(), " on each rank")});
    table.add_row({"averaged", averaged()});
    if (plan_.streams()) table.add_row({"fragments", fragments()});
    if (plan_.config.mixing_factor > 0)
      table.add_row({"a worker keeps", shortest(plan_.config.mixing_factor) + " of its own"});
    table.add_row({"sent for an averaging", bytes_text(plan_.exchange_bytes) + " by each rank"});
    return table.render();
  }

  void add_to(nlohmann::json& document) const override {
    document["local"] = {{"workers", plan_.workers},
                         {"workers_of_rank", plan_.workers_of_rank()},
                         {"inner_steps", plan_.config.inner_steps},
                         {"begin_step", plan_.config.begin_step},
                         {"outer_lr", plan_.config.outer_lr},
                         {"outer_momentum", plan_.config.outer_momentum},
                         {"fragments", plan_.config.fragments},
                         {"largest_fragment_B", plan_.fragment_bytes},
                         {"delay", plan_.config.delay},
                         {"mixing_factor", plan_.config.mixing_factor},
                         {"exchange_B", plan_.exchange_bytes}};
  }

 private:
  std::string averaged() const {
    auto const& config = plan_.config;
    if (!plan_.apart()) return "gradients, in every step";
    auto parameters = str("parameters, every ", config.inner_steps, " steps");
    if (plan_.has_outer_step())
      parameters += str(", as a gradient: lr ", shortest(config.outer_lr), ", momentum ",
                        shortest(config.outer_momentum));
    return config.begin_step == 0 ? parameters
                                  : str("gradients, in each of the first ", config.begin_step,
                                        " steps; then ", parameters);
  }

  std::string fragments() const {
    auto const delay = plan_.config.delay;
    return str(plan_.config.fragments, ", the largest of ", bytes_text(plan_.fragment_bytes),
               delay == 0 ? "" : str(", under way for ", delay, delay == 1 ? " step" : " steps"));
  }
};

void check_fragments(LocalConfig const& config, ParameterLayout const& layout) {
  auto const what = str("strategy.fragments: ", config.fragments);
  if (config.fragments > config.inner_steps)
    refuse_with(LocalConfig::name, str(what, " and inner_steps: ", config.inner_steps),
                "each is sent once in so many steps, and no two after the same step",
                "take fewer fragments, or more inner steps");
  if (auto const most = Fragments::most(layout); config.fragments > most)
    refuse_with(LocalConfig::name, what,
                str("they are whole blocks, and the model has ", most, " with parameters"),
                str("take at most ", most));
  auto const gap = config.inner_steps / config.fragments;
  if (config.delay >= gap)
    refuse_with(LocalConfig::name,
                str("strategy.delay: ", config.delay, " and inner_steps / fragments: ", gap),
                "a fragment arrives before the next one is sent",
                str("take a delay below ", gap, ", more inner steps or fewer fragments"));
}

void check(LocalPlan const& plan, PlanInput const& input) {
  if (!plan.apart() && (plan.has_outer_step() || plan.streams()))
    refuse_with(LocalConfig::name,
                plan.has_outer_step() ? "strategy.outer_lr or outer_momentum"
                                      : "strategy.fragments, delay or mixing_factor",
                plan.workers == 1 ? "one worker has no others to average with"
                                  : "with inner_steps: 1 gradients are averaged, not parameters",
                "leave them out, or take several workers and more inner steps");
  check_fragments(plan.config, input.layout);
  refuse_what_needs_all_gradients(LocalConfig::name, input);
}

/// Of a rank, which may play several workers.
gpu::MemoryUse memory_of(LocalPlan const& plan, StrategyPlan const& of_replicas) {
  auto memory = memory_of_workers(of_replicas, plan.workers_of_rank(), plan.replicas_of_rank());
  auto const copy = of_replicas.memory[gpu::MemoryCategory::gradients];
  auto& held = memory[gpu::MemoryCategory::optimizer];
  if (plan.has_outer_step()) held += OuterStep::tensors * copy;
  if (plan.config.delay > 0) held += copy;
  return memory;
}

/// Of all fragments, each with what ranks agree on.
void set_fragments(LocalPlan& plan, PlanInput const& input, std::int64_t element_size) {
  auto const& config = plan.config;
  plan.fragments = Fragments(input.layout, config.fragments, config.inner_steps, config.delay);
  plan.fragment_bytes = plan.fragments.largest() * element_size;
  for (auto const& range : plan.fragments.ranges())
    plan.exchange_bytes +=
        worker_sum_bytes(range.size() * element_size, plan.workers_of_rank(), input.ranks) +
        all_reduce_bytes(status_room * element_size, input.ranks);
}

/// What holds only where workers step on their own.
void set_apart(StrategyPlan& plan, LocalPlan const& local, PlanInput const& input) {
  auto const& config = local.config;
  plan.sync_every = local.fragments.largest_gap();
  if (plan.sync_every > 1) plan.results = Results::at_meeting;
  plan.saved.copies = plan.shares.workers + 1;
  if (local.has_outer_step()) ++plan.saved.copies;
  if (config.delay > 0) ++plan.saved.states;
  plan.traffic.bytes_sent /= config.inner_steps;
  plan.numbers.of_serial = false;
  plan.numbers.choices = {{"strategy.inner_steps", std::to_string(config.inner_steps)},
                          {"strategy.begin_step", std::to_string(config.begin_step)},
                          {"strategy.outer_lr", shortest(config.outer_lr)},
                          {"strategy.outer_momentum", shortest(config.outer_momentum)},
                          {"strategy.fragments", std::to_string(config.fragments)},
                          {"strategy.delay", std::to_string(config.delay)},
                          {"strategy.mixing_factor", shortest(config.mixing_factor)}};
  if (config.begin_step == 0) return;
  LocalConfig const synchronous{.workers = config.workers,
                                .inner_steps = 1,
                                .begin_step = config.begin_step,
                                .micro_batches = config.micro_batches};
  plan.warm_start.steps = config.begin_step;
  plan.warm_start.like = std::make_shared<StrategyPlan const>(plan_of(synchronous, input));
}

}  // namespace

StrategyPlan plan_of(LocalConfig const& config, PlanInput const& input) {
  auto plan = plan_of_replicas(input);
  LocalPlan local{.config = config,
                  .workers = dealt_workers(LocalConfig::name, config.workers, input.ranks),
                  .ranks = input.ranks};
  check(local, input);
  set_fragments(local, input, plan.element_size);
  plan.shares.workers = local.workers;
  plan.shares.micro_batches = config.micro_batches;
  plan.memory = memory_of(local, plan);
  plan.traffic.bytes_sent = local.exchange_bytes;
  plan.numbers.order_of_sums = order_of_sums(config.micro_batches);
  plan.traffic.operations = {BenchOperation::all_reduce};
  plan.hashes.emplace_back("workers and averagings", Hash()
                                                         .add(std::uint64_t(local.workers))
                                                         .add(std::uint64_t(config.inner_steps))
                                                         .add(std::uint64_t(config.begin_step))
                                                         .add(shortest(config.outer_lr))
                                                         .add(shortest(config.outer_momentum))
                                                         .add(std::uint64_t(config.fragments))
                                                         .add(std::uint64_t(config.delay))
                                                         .add(shortest(config.mixing_factor))
                                                         .value());
  if (local.apart()) set_apart(plan, local, input);
  plan.traffic.most_bytes_sent = plan.traffic.bytes_sent;
  plan.strategy = std::make_shared<PlannedLocal>(local);
  return plan;
}

}  // namespace stratagem
