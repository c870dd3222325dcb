#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "strategy/replica.hpp"

namespace stratagem {

using trace::Phase;

namespace {

constexpr double second = 1e9;
constexpr std::int64_t least_evaluation_batch = 64;  // small passes waste time, and nothing is kept

double seconds_of(std::int64_t ns) {
  return static_cast<double>(ns) / second;
}

std::string describe_epoch(trace::EpochRecord const& epoch, std::int64_t epochs) {
  auto text =
      str("epoch ", epoch.epoch + 1, "/", epochs, "  loss ", format_number(epoch.train_loss, 4),
          "  train ", format_number(100 * epoch.train_accuracy, 2), " %");
  if (std::isfinite(epoch.test_accuracy))
    text += str("  test loss ", format_number(epoch.test_loss, 4), "  test ",
                format_number(100 * epoch.test_accuracy, 2), " %");
  return text + str("  ", format_duration(epoch.time_s), "  ",
                    format_count(std::llround(epoch.images_per_s)), " images/s");
}

}  // namespace

InputFormat input_format(RunPlan const& plan, Model const& model, gpu::Device const& device) {
  return {.channels = plan.input.channels,
          .size = plan.input.size,
          .type = compute_type(plan.config.precision.compute),
          .memory_format = model.memory_format == MemoryFormat::channels_last
                               ? at::MemoryFormat::ChannelsLast
                               : at::MemoryFormat::Contiguous,
          .device = device};
}

Trainer::Trainer(TrainerParts const& parts)
    : parts_(parts),
      schedule_(parts.plan.config.optimizer, parts.plan.strategy.workers,
                parts.plan.steps_per_epoch, parts.plan.total_steps),
      evaluation_maker_(parts.dataset, parts.format),
      telemetry_(gpu::make_telemetry(parts.device)),
      started_ns_(monotonic_ns()) {}

TrainResult Trainer::run() {
  auto const& run = parts_.plan.config.run;
  auto const& plan = parts_.plan;
  if (plan.total_steps == 0) {
    if (run.evaluate_every > 0) evaluate_now();
    result_.reason = run.evaluate_every > 0 ? "evaluated only" : "nothing to do";
    return result_;
  }
  std::optional<Loader> loader;
  if (auto const slice = plan.strategy.slice_of(parts_.communicator.rank()))
    loader.emplace(parts_.dataset, parts_.format,
                   LoadPlan{.seed = run.seed,
                            .global_batch = plan.global_batch,
                            .slice = *slice,
                            .end_step = plan.strategy.deals_shares ? 0 : plan.total_steps,
                            .augment = plan.config.data.augment},
                   &parts_.recorder);
  bool stop = false;
  while (step_ < plan.total_steps && !stop) {
    auto sums = begin_epoch();
    auto const first = step_, end = std::min(first + plan.steps_per_epoch, plan.total_steps);
    parts_.strategy.begin_round(first, end);
    while (loader && step(*loader, end, sums)) {
    }
    parts_.strategy.drain();
    auto const time_s = seconds_of(monotonic_ns() - sums.began_ns);
    if (plan.strategy.servers) join(sums, first);
    stop = sums.stop;
    bool const last = stop || step_ == plan.total_steps;
    bool const due = run.evaluate_every > 0 && ((epoch_ + 1) % run.evaluate_every == 0 || last);
    end_epoch(sums, time_s, due);
    ++epoch_;
  }
  result_.steps = step_;
  bool const all = step_ == run.epochs * plan.steps_per_epoch;
  result_.reason = all ? "epochs done" : step_ == plan.total_steps ? "max_steps" : "time_limit";
  return result_;
}

Trainer::EpochSums Trainer::begin_epoch() {
  gpu::reset_peak_memory(parts_.device);
  return {.began_ns = monotonic_ns(),
          .bytes_before = parts_.communicator.bytes_sent(),
          .energy_before = telemetry_->sample().energy};
}

bool Trainer::step(Loader& loader, std::int64_t end, EpochSums& sums) {
  auto& recorder = parts_.recorder;
  recorder.begin_step(own_steps_, epoch_);
  recorder.enter(Phase::data);
  auto const batch = next_batch(loader, end);
  if (!batch) return false;
  double const lr = schedule_.lr(batch->step);
  auto const result = parts_.strategy.step(*batch, {.lr = lr, .request_stop = out_of_time()});
  auto record = recorder.end_step();
  record.loss = result.loss;
  record.samples = batch->size();
  record.lr = lr;
  recorder.record(record);
  if (result.skipped)
    recorder.event(trace::Severity::info, "step_skipped",
                   str("step ", batch->step, ": the scaled gradients overflowed"));

  sums.loss += result.loss;
  sums.correct += result.correct;
  sums.samples += result.samples;
  sums.stop = result.stop;
  ++sums.steps;
  ++step_;
  ++own_steps_;
  if (parts_.display != nullptr) parts_.display->step(batch->step + 1, result.samples, result.loss);
  return !result.stop;
}

std::optional<Batch> Trainer::next_batch(Loader& loader, std::int64_t end) {
  if (parts_.plan.strategy.deals_shares) {
    for (auto const& share : parts_.strategy.new_shares()) loader.ask(share);
    return loader.next();
  }
  if (step_ == end) return std::nullopt;
  auto batch = loader.next();
  expects(batch.has_value() && batch->step == step_, "the loader hands out the steps in order");
  return batch;
}

void Trainer::join(EpochSums& sums, std::int64_t first_step) {
  auto const& plan = parts_.plan.strategy;
  auto const slice = plan.slice_of(parts_.communicator.rank());
  auto const all = parts_.communicator.allocate(5, at::kDouble);
  // Where nobody deals shares, every worker has the sums of all.
  if (slice && (plan.deals_shares || slice->rank == 0))
    all.copy_(
        at::tensor({sums.loss, static_cast<double>(sums.correct), static_cast<double>(sums.samples),
                    static_cast<double>(sums.steps), sums.stop ? 1.0 : 0.0}));
  parts_.communicator.all_reduce(all).wait_on_stream();
  auto const of = all.cpu();
  auto const* value = of.data_ptr<double>();
  sums.loss = value[0];
  sums.correct = std::llround(value[1]);
  sums.samples = std::llround(value[2]);
  sums.steps = std::llround(value[3]);
  sums.stop = value[4] > 0;
  step_ = first_step + sums.steps / (plan.deals_shares ? plan.workers : 1);
}

void Trainer::end_epoch(EpochSums const& sums, double time_s, bool evaluate) {
  auto const peak = gpu::peak_memory(parts_.device);
  trace::EpochRecord epoch{
      .epoch = epoch_,
      .time_s = time_s,
      .train_loss = sums.loss / static_cast<double>(sums.steps),
      .train_accuracy = static_cast<double>(sums.correct) / static_cast<double>(sums.samples),
      .images_per_s = static_cast<double>(sums.samples) / time_s,
      .comm_bytes = parts_.communicator.bytes_sent() - sums.bytes_before,
      .mem_peak_allocated = peak.total(),
      .mem_peak_reserved = gpu::reserved_memory(parts_.device),
      .energy_J = (telemetry_->sample().energy - sums.energy_before) / 1000};
  parts_.recorder.sample_memory(peak);
  if (evaluate) {
    evaluate_now();
    epoch.test_loss = result_.last.loss;
    epoch.test_accuracy = result_.last.accuracy;
  }
  parts_.recorder.record(epoch);
  result_.train_loss = epoch.train_loss;
  result_.train_time_s += epoch.time_s;
  write_metrics(epoch);
  auto const line = describe_epoch(epoch, parts_.plan.config.run.epochs);
  if (parts_.display != nullptr) parts_.display->say(line);
  parts_.log.detail(line);
}

void Trainer::evaluate_now() {
  auto const batch = std::max(parts_.plan.samples_per_pass, least_evaluation_batch);
  result_.last =
      evaluate(parts_.strategy, parts_.communicator, evaluation_maker_, parts_.dataset.test,
               parts_.plan.strategy.slice_of(parts_.communicator.rank()), batch);
}

void Trainer::write_metrics(trace::EpochRecord const& epoch) {
  if (parts_.metrics == nullptr) return;
  try {
    parts_.metrics->add(epoch, step_, schedule_.lr(step_ - 1));
  } catch (Error const& failure) {
    // The training is worth more than its table, which the trace holds too.
    parts_.log.warning(str("no further metrics: ", failure.what()));
    parts_.metrics = nullptr;
  }
}

bool Trainer::out_of_time() const {
  auto const limit = parts_.plan.config.run.max_time_s;
  return limit > 0 && seconds_of(monotonic_ns() - started_ns_) >= limit;
}

}  // namespace stratagem
