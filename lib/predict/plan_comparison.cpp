#include "predict/plan_comparison.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "predict/step_time.hpp"

namespace stratagem {
namespace {

/// Throws what each of them says, or all say alike.
void refuse_where_none_can(Comparison const& comparison, std::optional<Error> const& first) {
  auto const can = [](ComparedPlan const& one) { return one.forecast.has_value(); };
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

std::optional<std::int64_t> bytes_with_recompute(Forecast forecast,
                                                 ActivationPredictor& predictor) {
  auto const& plan = forecast.plan;
  auto& recompute = forecast.plan.config.model.recompute;
  if (recompute.every == 1) return std::nullopt;
  recompute = {.every = 1};
  predict_activations(forecast, make_model(plan.config.model, plan.input), predictor);
  return forecast.peak_bytes();
}

double step_of(ComparedPlan const& one) {
  return one.forecast->time->step.total();
}

}  // namespace

std::int64_t ComparedPlan::busiest_bytes() const {
  return forecast->plan.strategy.most_bytes_sent_per_step;
}

bool ComparedPlan::trains_alike() const {
  return forecast->plan.strategy.numbers_of_serial;
}

Comparison compare_strategies(RunConfig const& config, Model const& model, int workers,
                              ActivationPredictor* predictor, Calibration const* calibration) {
  Comparison comparison;
  std::optional<Error> first;
  for (auto const& [name, strategy, without] : alternatives(config.strategy)) {
    auto chosen = config;
    chosen.strategy = strategy;
    chosen.run.ranks = workers + servers_of(strategy);
    ComparedPlan one{.name = name, .without = without};
    try {
      one.forecast =
          Forecast{make_run_plan(chosen, model, known_size(config.data), chosen.run.ranks)};
      if (predictor != nullptr) predict_activations(*one.forecast, model, *predictor);
      if (calibration != nullptr) predict_time(*one.forecast, model, *calibration);
    } catch (Error const& problem) {
      one.problem = problem.what();
      if (!first) first = problem;
    }
    comparison.strategies.push_back(std::move(one));
  }
  refuse_where_none_can(comparison, first);
  if (predictor != nullptr && comparison.ddp().forecast)
    comparison.recomputed_bytes = bytes_with_recompute(*comparison.ddp().forecast, *predictor);
  return comparison;
}

std::vector<ComparedPlan const*> candidates(Comparison const& comparison, Room const& room) {
  std::vector<ComparedPlan const*> found;
  for (auto const& one : comparison.strategies)
    if (one.forecast && one.trains_alike() && room.fits(one.forecast->peak_bytes()))
      found.push_back(&one);
  return found;
}

bool all_timed(std::vector<ComparedPlan const*> const& plans) {
  return std::ranges::all_of(plans,
                             [](auto const* one) { return one->forecast->time.has_value(); });
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
