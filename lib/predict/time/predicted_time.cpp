#include "predict/time/predicted_time.hpp"

#include <algorithm>
#include <cmath>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "predict/time/step_time.hpp"

namespace stratagem {
namespace {

/// Each rank that holds whole tensors saves its part of parameters, and of what is kept for them.
double save_time(RunPlan const& plan, Model const& model, Calibration const& calibration) {
  auto const ranks = static_cast<int>(plan.strategy.saved.holders.size());
  auto const& strategy = plan.strategy;
  auto const bytes = strategy.saved.copies * saved_bytes(model, plan.config) +
                     strategy.saved.states * model.parameter_count() * strategy.element_size;
  return calibration.save_s(ranks, static_cast<double>(bytes) / ranks);
}

/// Of all steps, the first of which may be a warm start.
double training_time(RunPlan const& plan, Model const& model, Calibration const& calibration,
                     StepTime const& usual) {
  auto const warm = std::min(plan.strategy.warm_start.steps, plan.total_steps);
  auto const rest = static_cast<double>(plan.total_steps - warm) * usual.total();
  if (warm == 0) return rest;
  auto like = plan;
  like.strategy = *plan.strategy.warm_start.like;
  like.samples_per_pass =
      plan.samples_per_pass * plan.strategy.shares.pushes / like.strategy.shares.pushes;
  auto const step = predict_step(like, model, step_costs(like, model, calibration));
  return static_cast<double>(warm) * (step.total() + usual.images_s) + rest;
}

/// Of the user's own images; of published machines nobody knows it.
std::optional<Reading> reading_of(RunPlan const& plan, StepCosts const& costs,
                                  Calibration const& calibration) {
  auto const& data = plan.config.data;
  bool const own_images = !data.path.empty() && !plan.input.is_text();
  if (!own_images || !calibration.published.empty()) return std::nullopt;
  return Reading{.image_s = calibration.read_s(data, costs.ranks_on_node),
                 .threads = decode_threads(data, calibration.on_gpu, costs.threads)};
}

/// Reading goes on beside a step, and is waited for where it takes longer. Where the ranks of a CPU
/// use all cores, it takes its time of them.
double wait_for_images(RunPlan const& plan, StepCosts const& costs, Reading const& reading,
                       double step_s) {
  auto const images = static_cast<double>(plan.batch_per_rank);
  auto const behind = images / reading.images_per_s() - step_s;
  bool const crowded = costs.cores > 0 && costs.ranks_on_node * costs.threads >= costs.cores;
  auto const taken = crowded ? images * reading.image_s * costs.ranks_on_node / costs.cores : 0.0;
  return std::max({behind, taken, 0.0});
}

/// Training, which takes so long without a limit, and evaluations.
double run_time(RunPlan const& plan, StepCosts const& costs, double training) {
  auto const& run = plan.config.run;
  if (run.max_time_s > 0) training = std::min(training, run.max_time_s);
  if (run.evaluate_every == 0) return training;
  auto const epochs =
      std::ceil(static_cast<double>(plan.total_steps) /
                static_cast<double>(std::max<std::int64_t>(plan.steps_per_epoch, 1)));
  auto const evaluations =
      std::max(std::ceil(epochs / static_cast<double>(run.evaluate_every)), 1.0);
  auto const passes = static_cast<double>(plan.images.test) /
                      static_cast<double>(plan.samples_per_pass * plan.strategy.shares.workers);
  int const on_node = std::max(costs.ranks_on_node * costs.threads, 1);
  auto const sharing =
      costs.cores > 0 ? std::max(1.0, static_cast<double>(on_node) / costs.cores) : 1.0;
  return training + evaluations * passes * costs.forward_s * sharing;
}

}  // namespace

std::string PredictedTime::request() const {
  auto const minutes = saturated(std::ceil((1.25 * run_s + 300) / 60));
  auto const two = [](std::int64_t number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
  };
  return str(two(minutes / 60), ":", two(minutes % 60), ":00");
}

int PredictedTime::lead_s() const {
  auto const wait_s = (1 + sync_every) * step.total();
  return 10 * static_cast<int>(std::ceil((60 + 2 * (wait_s + save_s)) / 10));
}

PredictedTime predict_time(RunPlan const& plan, Model const& model,
                           Calibration const& calibration) {
  auto const costs = step_costs(plan, model, calibration);
  PredictedTime time{.step = predict_step(plan, model, costs),
                     .sync_every = plan.strategy.sync_every,
                     .reading = reading_of(plan, costs, calibration),
                     .published = calibration.published};
  if (calibration.published.empty() && !calibration.on_gpu)
    time.ratio_error = ratio_error(time.step.total());
  if (time.reading)
    time.step.images_s = wait_for_images(plan, costs, *time.reading, time.step.total());
  time.epoch_s = static_cast<double>(plan.steps_per_epoch) * time.step.total();
  time.run_s = run_time(plan, costs, training_time(plan, model, calibration, time.step));
  time.save_s = save_time(plan, model, calibration);
  return time;
}

}  // namespace stratagem
