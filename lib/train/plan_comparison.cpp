#include "train/plan_comparison.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "train/step_time.hpp"

namespace stratagem {
namespace {

struct Alternative {
  std::string name;
  StrategyConfig strategy;
  int servers = 0;
};

/// What `config` says of this kind of strategy, or its defaults.
template <class Kind>
Kind settings_of(RunConfig const& config) {
  auto const* chosen = std::get_if<Kind>(&config.strategy);
  return chosen == nullptr ? Kind{} : *chosen;
}

/// The simplest first.
std::vector<Alternative> alternatives(RunConfig const& config) {
  std::vector<Alternative> all{{"ddp", settings_of<DdpConfig>(config)}};
  for (auto const& [shard, name] : {std::pair{Shard::optimizer, "fsdp optimizer"},
                                    {Shard::gradients, "fsdp gradients"},
                                    {Shard::full, "fsdp full"}}) {
    auto fsdp = settings_of<FsdpConfig>(config);
    fsdp.shard = shard;
    if (shard != Shard::full) {
      fsdp.reshard_after_forward = true;
      fsdp.keep_units = 0;
    }
    all.push_back({name, fsdp});
  }
  for (auto const& [mode, name] :
       {std::pair{PsMode::sync, "ps sync"}, {PsMode::async, "ps async"}}) {
    auto const given = settings_of<PsConfig>(config);
    PsConfig const ps{.servers = given.servers,
                      .chunk_mb = given.chunk_mb,
                      .transport = given.transport,
                      .mode = mode};
    all.push_back({name, ps, ps.servers});
  }
  return all;
}

/// Throws what each of them says, or all say alike.
void refuse_where_none_can(Comparison const& comparison, std::optional<Error> const& first) {
  auto const can = [](ComparedPlan const& one) { return one.plan.has_value(); };
  if (!first || std::ranges::any_of(comparison.strategies, can)) return;
  std::string all;
  for (auto const& one : comparison.strategies) {
    if (one.problem == comparison.ddp().problem) continue;
    all += str(all.empty() ? "" : "; ", one.name, ": ", one.problem);
  }
  if (all.empty()) throw *first;
  throw Error(ExitCode::usage, "no strategy can do this run",
              str("ddp: ", comparison.ddp().problem, "; ", all));
}

std::optional<std::int64_t> bytes_with_recompute(RunPlan plan, ActivationPredictor& predictor) {
  if (plan.config.model.recompute.every == 1) return std::nullopt;
  plan.config.model.recompute = {.every = 1};
  predict_activations(plan, make_model(plan.config.model, plan.input), predictor);
  return plan.peak_bytes();
}

double step_of(ComparedPlan const& one) {
  return one.plan->time->step.total();
}

}  // namespace

std::int64_t ComparedPlan::busiest_bytes() const {
  return plan->strategy.most_bytes_sent_per_step;
}

bool ComparedPlan::trains_alike() const {
  return plan->strategy.numbers_of_serial;
}

Comparison compare_strategies(RunConfig const& config, Model const& model, int workers,
                              ActivationPredictor* predictor, Calibration const* calibration) {
  Comparison comparison;
  std::optional<Error> first;
  for (auto const& alternative : alternatives(config)) {
    auto chosen = config;
    chosen.strategy = alternative.strategy;
    chosen.run.ranks = workers + alternative.servers;
    ComparedPlan one{.name = alternative.name};
    try {
      one.plan = make_run_plan(chosen, model, published_size(config.data), chosen.run.ranks);
      if (predictor != nullptr) predict_activations(*one.plan, model, *predictor);
      if (calibration != nullptr) predict_time(*one.plan, model, *calibration);
    } catch (Error const& problem) {
      one.problem = problem.what();
      if (!first) first = problem;
    }
    comparison.strategies.push_back(std::move(one));
  }
  refuse_where_none_can(comparison, first);
  if (predictor != nullptr && comparison.ddp().plan)
    comparison.recomputed_bytes = bytes_with_recompute(*comparison.ddp().plan, *predictor);
  return comparison;
}

std::vector<ComparedPlan const*> candidates(Comparison const& comparison, Room const& room) {
  std::vector<ComparedPlan const*> found;
  for (auto const& one : comparison.strategies)
    if (one.plan && one.trains_alike() && room.fits(one.plan->peak_bytes())) found.push_back(&one);
  return found;
}

bool all_timed(std::vector<ComparedPlan const*> const& plans) {
  return std::ranges::all_of(plans, [](auto const* one) { return one->plan->time.has_value(); });
}

ComparedPlan const* recommended(Comparison const& comparison, Room const& room) {
  auto const found = candidates(comparison, room);
  if (found.empty()) return nullptr;
  bool const timed = all_timed(found);
  auto const cost = [&](ComparedPlan const* one) {
    return timed ? step_of(*one) : static_cast<double>(one->busiest_bytes());
  };
  auto const least = std::ranges::min(found, {}, cost);
  auto const enough = cost(least) * (timed ? time_margin : byte_margin);
  return *std::ranges::find_if(found, [&](auto const* one) { return cost(one) <= enough; });
}

}  // namespace stratagem
