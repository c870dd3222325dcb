#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/clock.hpp"
#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "strategy/pass/replica.hpp"
#include "strategy/state/replicas.hpp"

namespace stratagem {

using trace::Phase;

namespace {

constexpr double second = 1e9;
constexpr std::int64_t least_evaluated = 64;  // labels: small passes waste time

double seconds_of(std::int64_t ns) {
  return static_cast<double>(ns) / second;
}

/// Nothing computes while images to evaluate are read.
InputFormat for_evaluation(InputFormat format) {
  format.threads = std::max(format.threads, at::get_num_threads());
  return format;
}

/// Of text, what its readers know: perplexity, and bits per byte where bytes are known.
std::string describe_text(trace::EpochRecord const& epoch, double bytes_per_token) {
  auto text = str("  perplexity ", format_number(std::exp(epoch.test_loss), 2));
  if (bytes_per_token > 0)
    text += str("  bits/byte ",
                format_number(epoch.test_loss / std::numbers::ln2 / bytes_per_token, 4));
  return text;
}

std::string describe_epoch(trace::EpochRecord const& epoch, RunPlan const& plan,
                           Dataset const& dataset) {
  auto const epochs = plan.config.run.epochs;
  auto text =
      str("epoch ", epoch.epoch + 1, "/", epochs, "  loss ", format_number(epoch.train_loss, 4),
          "  train ", format_number(100 * epoch.train_accuracy, 2), " %");
  if (std::isfinite(epoch.test_accuracy))
    text += str("  test loss ", format_number(epoch.test_loss, 4), "  test ",
                format_number(100 * epoch.test_accuracy, 2), " %");
  if (std::isfinite(epoch.test_loss) && dataset.train.text)
    text += describe_text(epoch, dataset.train.text->bytes_per_token());
  return text + str("  ", format_duration(epoch.time_s), "  ",
                    format_count(std::llround(epoch.images_per_s)), " ", plan.labels_name(), "/s");
}

}  // namespace

Trainer::Trainer(TrainerParts const& parts, TrainingProgress const& start)
    : parts_(parts),
      schedule_(parts.plan.config.optimizer, parts.plan.strategy.shares.workers,
                parts.plan.steps_per_epoch, parts.plan.total_steps),
      evaluation_maker_(parts.dataset, for_evaluation(parts.format)),
      telemetry_(gpu::make_telemetry(parts.device)),
      started_ns_(monotonic_ns()),
      wall_time_before_s_(start.wall_time_s),
      began_after_(start.step),
      position_(start),
      own_steps_(start.step) {}

TrainResult Trainer::run() {
  auto const& plan = parts_.plan;
  if (plan.total_steps == 0) {
    bool const evaluates = plan.config.run.evaluate_every > 0;
    if (evaluates && !evaluate_now()) save_and_stop();
    result_.reason = result_.interrupted ? "interrupted"
                     : evaluates         ? "evaluated only"
                                         : "nothing to do";
    return result_;
  }
  auto loader = make_loader();
  Requests requests;
  gpu::reset_peak_memory(parts_.device);
  while (true) {
    bool const over = requests.stop || position_.step >= plan.total_steps;
    bool const epoch_over = over || position_.step % plan.steps_per_epoch == 0;
    auto const reached = position_;
    if (position_.epoch.steps > 0 && epoch_over && !end_epoch(over)) {
      save_and_stop();
      break;
    }
    if (over) {
      save_end(reached);
      break;
    }
    if (requests.save) save(position_);
    requests = train_round(loader);
    if (!requests.interrupt) continue;
    save_and_stop();
    break;
  }
  conclude();
  return result_;
}

void Trainer::conclude() {
  auto const& plan = parts_.plan;
  result_.steps = position_.step;
  result_.train_time_s = position_.train_time_s + position_.epoch.time_s;
  result_.wall_time_s = wall_time_s();
  bool const all = position_.step >= plan.config.run.epochs * plan.steps_per_epoch;
  bool const most = position_.step >= plan.total_steps;
  result_.reason = result_.interrupted ? "interrupted"
                   : all               ? "epochs done"
                   : most              ? "max_steps"
                                       : "time_limit";
}

std::optional<Loader> Trainer::make_loader() const {
  auto const& plan = parts_.plan;
  auto const slice = plan.strategy.placement.slice_of(parts_.world.all().rank());
  if (!slice) return std::nullopt;
  return std::optional<Loader>(
      std::in_place, parts_.dataset, parts_.format,
      LoadPlan{.seed = plan.config.run.seed,
               .global_batch = plan.global_batch,
               .slice = *slice,
               .first_step = position_.step,
               .end_step = plan.strategy.synchronous() ? plan.total_steps : 0,
               .augment = plan.config.data.augment,
               .clients = plan.clients},
      &parts_.recorder);
}

std::int64_t Trainer::end_of_round() const {
  auto const& plan = parts_.plan;
  auto const next = [this](std::int64_t every) { return (position_.step / every + 1) * every; };
  auto const end = std::min(next(plan.steps_per_epoch), plan.total_steps);
  auto const every = plan.config.checkpoint.every_steps;
  return every > 0 ? std::min(end, next(every)) : end;
}

Requests Trainer::train_round(std::optional<Loader>& loader) {
  auto const& plan = parts_.plan.strategy;
  // Results that all know are added one after the other, however rounds cut an epoch; others are
  // each rank's own until the ranks meet.
  auto sums = plan.shares_results() ? position_.epoch : EpochSums{};
  auto const steps_before = sums.steps;
  Requests requests;
  round_began_ns_ = monotonic_ns();
  auto const bytes_before = parts_.world.bytes_sent();
  auto const energy_before = telemetry_->sample().energy;
  auto const discarded_before = discarded();
  auto const first_step = position_.step;
  round_steps_ = 0;
  run_round(parts_.member,
            {.first_step = first_step,
             .end_step = end_of_round(),
             .batches = loader ? &*loader : nullptr,
             .requests = [this] { return own_requests(); }},
            {.before =
                 [this] {
                   parts_.recorder.begin_step(own_steps_,
                                              position_.step / parts_.plan.steps_per_epoch);
                   parts_.recorder.enter(Phase::data);
                 },
             .options = [this](Batch const& batch) { return options_of(batch); },
             .after =
                 [&](Batch const& batch, StepResult const& result) {
                   requests = result.requests;
                   return note(batch, result, sums);
                 }});
  parts_.recorder.settle();
  parts_.recorder.enter(trace::Activity::between, own_steps_ - 1);
  sums.time_s += seconds_of(monotonic_ns() - round_began_ns_);
  sums.comm_bytes += parts_.world.bytes_sent() - bytes_before;
  sums.energy_J += (telemetry_->sample().energy - energy_before) / 1000;
  if (plan.meets_after_rounds()) join(sums, discarded() - discarded_before, requests);
  if (sums.labels > 0)
    applied_share_ = static_cast<double>(sums.applied) / static_cast<double>(sums.labels);
  auto const made = sums.steps - steps_before;
  std::int64_t const bringing = plan.placement.workers();
  position_.step =
      first_step + (plan.shares_results() ? made : made / (bringing * plan.shares.pushes));
  parts_.reached.step = position_.step;
  if (!plan.shares_results()) sums += position_.epoch;
  position_.epoch = sums;
  auto const every = parts_.plan.config.checkpoint.every_steps;
  if (every > 0 && position_.step % every == 0) requests.save = true;
  return requests;
}

StepOptions Trainer::options_of(Batch const& batch) const {
  auto const& plan = parts_.plan;
  expects(!plan.strategy.synchronous() || batch.step == position_.step,
          "the loader hands out the steps in order");
  auto const every = plan.config.integrity.hash_every;
  bool const compares = every > 0 && batch.step % every == 0 && parts_.world.all().size() > 1;
  return {.lr = schedule_.lr(batch.step), .requests = own_requests(), .compare_replicas = compares};
}

bool Trainer::note(Batch const& batch, StepResult const& result, EpochSums& sums) {
  auto& recorder = parts_.recorder;
  corrupt(batch.step);
  recorder.end_step(
      {.loss = result.loss, .samples = batch.labels.numel(), .lr = schedule_.lr(batch.step)});
  if (result.skipped)
    recorder.event(trace::Severity::info, "step_skipped",
                   str("step ", batch.step, ": the scaled gradients overflowed"));
  if (auto const news = parts_.checkpoints.news())
    recorder.event(trace::Severity::info, "checkpoint", *news);

  sums.loss += result.loss;
  sums.correct += result.correct;
  sums.labels += result.labels;
  if (!result.skipped) sums.applied += result.labels;
  ++sums.steps;
  ++own_steps_;
  ++round_steps_;
  auto const& plan = parts_.plan.strategy;
  if (plan.synchronous()) ++position_.step;
  parts_.reached.step =
      position_.step + (plan.synchronous() ? 0 : round_steps_ / plan.shares.pushes);
  if (parts_.display != nullptr) {
    // Others' results are not known yet: as many labels as here, and as many applied as before.
    auto const own = static_cast<double>(result.skipped ? 0 : result.labels);
    auto const others = plan.placement.workers() * applied_share_;
    parts_.display->step(batch.step + 1, std::llround(plan.shares_results() ? own : own * others),
                         result.loss);
  }
  return !result.requests.any();
}

void Trainer::corrupt(std::int64_t step) const {
  if (parts_.failpoints.empty()) return;
  auto const held = parts_.member.participant().state().replicas;
  if (held.empty()) return;
  auto const& tensor = held.front().second;
  parts_.failpoints.corrupt(
      "optimizer", step,
      {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(bytes_of(tensor))});
}

double Trainer::discarded() const {
  return parts_.member.server ? parts_.member.server->discarded() : 0;
}

void Trainer::join(EpochSums& sums, double discarded, Requests& requests) const {
  auto const& plan = parts_.plan.strategy;
  auto const slice = plan.placement.slice_of(parts_.world.all().rank());
  requests |= own_requests();
  if (!plan.synchronous()) requests.save = parts_.checkpoints.due();
  // Where results are shared every worker has the sums of all.
  bool const brings = slice && (!plan.shares_results() || slice->rank == 0);
  auto const own = brings ? sums : EpochSums{};
  auto const per_push =
      parts_.plan.samples_per_pass * plan.shares.micro_batches * parts_.plan.labels_per_sample();
  auto const applied = static_cast<double>(own.applied) - discarded * static_cast<double>(per_push);
  auto const all = parts_.world.all().allocate(8, at::kDouble);
  all.copy_(at::tensor({own.loss, static_cast<double>(own.correct), static_cast<double>(own.labels),
                        static_cast<double>(own.steps), applied, requests.stop ? 1.0 : 0.0,
                        requests.interrupt ? 1.0 : 0.0, requests.save ? 1.0 : 0.0}));
  parts_.world.all().all_reduce(all).wait_on_stream();
  auto const of_all = all.cpu();
  auto const* value = of_all.data_ptr<double>();
  sums.loss = value[0];
  sums.correct = std::llround(value[1]);
  sums.labels = std::llround(value[2]);
  sums.steps = std::llround(value[3]);
  sums.applied = std::llround(value[4]);
  requests = {.stop = value[5] > 0, .interrupt = value[6] > 0, .save = value[7] > 0};
}

bool Trainer::end_epoch(bool last) {
  auto const& run = parts_.plan.config.run;
  auto const& sums = position_.epoch;
  auto const number = std::max<std::int64_t>(position_.step - 1, 0) / parts_.plan.steps_per_epoch;
  auto const peak = gpu::peak_memory(parts_.device);
  trace::EpochRecord epoch{
      .epoch = number,
      .time_s = sums.time_s,
      .train_loss = sums.loss / static_cast<double>(sums.steps),
      .train_accuracy = static_cast<double>(sums.correct) / static_cast<double>(sums.labels),
      .images_per_s = static_cast<double>(sums.applied) / sums.time_s,
      .comm_bytes = sums.comm_bytes,
      .mem_peak_allocated = peak.total(),
      .mem_peak_reserved = gpu::reserved_memory(parts_.device),
      .energy_J = sums.energy_J};
  parts_.recorder.sample_memory(peak);
  if (run.evaluate_every > 0 && ((number + 1) % run.evaluate_every == 0 || last)) {
    if (!evaluate_now()) return false;
    epoch.test_loss = result_.last.loss;
    epoch.test_accuracy = result_.last.accuracy;
  }
  parts_.recorder.record(epoch);
  result_.train_loss = epoch.train_loss;
  position_.train_time_s += epoch.time_s;
  position_.epoch = {};
  write_metrics(epoch);
  auto line = describe_epoch(epoch, parts_.plan, parts_.dataset);
  if (auto const more = parts_.member.participant().report(); !more.empty()) line += "  " + more;
  if (parts_.display != nullptr) parts_.display->say(line);
  parts_.log.detail(line);
  gpu::reset_peak_memory(parts_.device);
  return true;
}

bool Trainer::evaluate_now() {
  parts_.recorder.enter(trace::Activity::evaluate, position_.step);
  auto const& strategy = parts_.plan.strategy;
  auto const found =
      evaluate(parts_.member, parts_.world.all(), evaluation_maker_, parts_.dataset.test,
               {.slice = strategy.placement.slice_of(parts_.world.all().rank()),
                .ranks = strategy.placement.workers(),
                .batch = std::max(parts_.plan.samples_per_pass,
                                  least_evaluated / parts_.plan.labels_per_sample())},
               [this] { return parts_.signals.interrupted(); });
  if (!found) return false;
  result_.last = *found;
  if (!std::isfinite(found->loss))
    parts_.log.warning(str("the test loss is not finite after ", format_count(position_.step),
                           " steps: look at the test data, and at the weights that training began "
                           "with or ended with"));
  return true;
}

void Trainer::write_metrics(trace::EpochRecord const& epoch) {
  if (parts_.metrics == nullptr) return;
  try {
    parts_.metrics->add(epoch, position_.step, schedule_.lr(position_.step - 1));
  } catch (Error const& failure) {
    // The training is worth more than its table, which the trace holds too.
    parts_.log.warning(str("no further metrics: ", failure.what()));
    parts_.metrics = nullptr;
  }
}

void Trainer::require_equal_replicas() const {
  if (parts_.plan.config.integrity.hash_every == 0) return;
  stratagem::require_equal_replicas(parts_.world.all(),
                                    ReplicaHashes(parts_.member.participant().state().replicas),
                                    position_.step);
}

void Trainer::save(TrainingProgress position) {
  parts_.recorder.enter(trace::Activity::save, position.step);
  require_equal_replicas();
  position.wall_time_s = wall_time_s();
  auto const text = parts_.checkpoints.save(position, parts_.member.participant());
  parts_.recorder.event(trace::Severity::info, "checkpoint_begun", text);
}

void Trainer::save_and_stop() {
  save(position_);
  result_.interrupted = true;
}

void Trainer::save_end(TrainingProgress const& reached) {
  if (!parts_.plan.config.checkpoint.at_end || reached.step == began_after_)
    return require_equal_replicas();  // before anything is made of them
  save(reached);
  result_.saved = true;
}

double Trainer::wall_time_s() const {
  return wall_time_before_s_ + seconds_of(monotonic_ns() - started_ns_);
}

Requests Trainer::own_requests() const {
  auto const limit = parts_.plan.config.run.max_time_s;
  auto const trained_s = position_.train_time_s + position_.epoch.time_s;
  bool const late = limit > 0 && trained_s + seconds_of(monotonic_ns() - round_began_ns_) >= limit;
  return {.stop = late,
          .interrupt = parts_.signals.interrupted(),
          .save = parts_.plan.strategy.synchronous() && parts_.checkpoints.due()};
}

}  // namespace stratagem
