#include "predict/plan_comparison.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "predict/time/step_time.hpp"

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

void find_savings(Comparison& comparison, Model const& model, ActivationPredictor* predictor,
                  Room const& room) {
  auto const* held = smallest(comparison);
  if (held == nullptr || room.fits(held->forecast->peak_bytes())) {
    held = &comparison.ddp();
    if (!held->forecast || !held->forecast->is_mostly_activations()) return;
  }
  comparison.saving_strategy = held->name;
  comparison.savings = savings_of(*held->forecast, model, predictor, room);
}

}  // namespace

std::int64_t ComparedPlan::busiest_bytes() const {
  return forecast->plan.strategy.traffic.most_bytes_sent;
}

double ComparedPlan::step_s() const {
  return forecast->time->step.total();
}

bool ComparedPlan::trains_alike() const {
  return same_numbers && forecast->plan.strategy.numbers.of_serial;
}

Comparison compare_strategies(RunConfig const& config, Model const& model, int workers,
                              ActivationPredictor* predictor, Room const& room,
                              Calibration const* calibration) {
  Comparison comparison{.mixes_samples = model.mixes_samples()};
  std::optional<Error> first;
  for (auto const& [name, strategy, without, same_numbers] : alternatives(config.strategy)) {
    auto chosen = config;
    chosen.strategy = strategy;
    chosen.run.ranks = workers + servers_of(strategy);
    ComparedPlan one{.name = name, .without = without, .same_numbers = same_numbers};
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
  find_savings(comparison, model, predictor, room);
  return comparison;
}

std::vector<ComparedPlan const*> candidates(Comparison const& comparison, Room const& room) {
  std::vector<ComparedPlan const*> found;
  for (auto const& one : comparison.strategies)
    if (one.forecast && one.trains_alike() && room.fits(one.forecast->peak_bytes()))
      found.push_back(&one);
  return found;
}

ComparedPlan const* smallest(Comparison const& comparison) {
  ComparedPlan const* found = nullptr;
  for (auto const& one : comparison.strategies)
    if (one.forecast && one.trains_alike() &&
        (found == nullptr || one.forecast->peak_bytes() < found->forecast->peak_bytes()))
      found = &one;
  return found;
}

bool any_fits(Comparison const& comparison, Room const& room) {
  return std::ranges::any_of(comparison.strategies, [&](auto const& one) {
    return one.forecast && room.fits(one.forecast->peak_bytes());
  });
}

bool told_apart_by_time(std::vector<ComparedPlan const*> const& plans) {
  return std::ranges::all_of(plans, [](auto const* one) {
    return one->forecast->time && one->forecast->time->ratio_error;
  });
}

ComparedPlan const* shortest_of(std::vector<ComparedPlan const*> const& plans) {
  return std::ranges::min(plans, {}, &ComparedPlan::step_s);
}

bool is_shorter(ComparedPlan const& one, ComparedPlan const& other) {
  auto const &a = one.forecast->time, &b = other.forecast->time;
  if (!a || !b || !a->ratio_error || !b->ratio_error) return false;
  auto const error = std::max(*a->ratio_error, *b->ratio_error);
  return one.step_s() * (1 + error) < other.step_s();
}

ComparedPlan const* recommended(Comparison const& comparison, Room const& room) {
  auto const found = candidates(comparison, room);
  if (found.empty()) return nullptr;
  if (told_apart_by_time(found)) {
    auto const* shortest = shortest_of(found);
    return *std::ranges::find_if(found,
                                 [&](auto const* one) { return !is_shorter(*shortest, *one); });
  }
  auto const cost = [](ComparedPlan const* one) {
    return static_cast<double>(one->busiest_bytes());
  };
  auto const enough = cost(std::ranges::min(found, {}, cost)) * byte_margin;
  return *std::ranges::find_if(found, [&](auto const* one) { return cost(one) <= enough; });
}

}  // namespace stratagem
