#include "data/loader.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/contract.hpp"
#include "base/system.hpp"

namespace stratagem {

Loader::Loader(Dataset const& dataset, InputFormat const& format, LoadPlan const& plan,
               trace::Recorder* recorder)
    : set_(dataset.train),
      runs_(set_.runs()),
      maker_(dataset, format),
      plan_(plan),
      augmenter_(plan.augment, plan.seed, dataset.may_flip),
      recorder_(recorder),
      next_step_(plan.first_step),
      next_out_(plan.first_step),
      missing_(std::max<std::int64_t>(plan.end_step - plan.first_step, 0)) {
  expects(steps_per_epoch(set_.size(), plan.global_batch) > 0, "an epoch has a step");
  expects(0 <= plan.first_step, "steps are counted from 0");
  if (recorder_ != nullptr) span_name_ = recorder_->intern("prepare_batch");
  thread_ = std::jthread([this](std::stop_token const& stop) { run(stop); });
}

void Loader::ask(Share const& share) {
  {
    std::lock_guard const lock(mutex_);
    asked_.push_back(share);
    ++missing_;
  }
  changed_.notify_all();
}

std::optional<Batch> Loader::next(std::int64_t end_step) {
  std::unique_lock lock(mutex_);
  if (next_out_ < plan_.end_step && next_out_ >= end_step) return std::nullopt;
  changed_.wait(lock, [this] { return !ready_.empty() || missing_ == 0 || failure_; });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  auto batch = std::move(ready_.front());
  ready_.pop_front();
  --missing_;
  if (next_out_ < plan_.end_step) ++next_out_;
  lock.unlock();
  changed_.notify_all();
  return maker_.deliver(std::move(batch));
}

void Loader::run(std::stop_token const& stop) {
  name_thread("loader");
  try {
    gpu::select(maker_.device());  // its driver pins the host memory
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return wanted(); }) && !stop.stop_requested()) {
      auto const share = take_wanted();
      lock.unlock();
      auto batch = prepare(share);
      lock.lock();
      if (!changed_.wait(lock, stop, [this] { return ready_.size() < batches_ahead; })) return;
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    std::lock_guard const lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

Share Loader::take_wanted() {
  if (next_step_ < plan_.end_step) return {next_step_++, plan_.slice};
  auto const share = asked_.front();
  asked_.pop_front();
  return share;
}

Batch Loader::prepare(Share const& share) {
  auto const step = share.step;
  auto const begin = monotonic_ns();
  auto const steps = steps_per_epoch(set_.size(), plan_.global_batch);
  auto const epoch = step / steps;
  auto const slots = share.slice.of_batch(plan_.global_batch);
  // A client may see a sample in several rounds of an epoch: each augments it anew.
  auto batch = plan_.clients
                   ? maker_.gather(set_, plan_.clients->samples(step, slots, plan_.global_batch),
                                   augmenter_, step)
                   : maker_.gather(set_, samples_of(epoch, step % steps, slots), augmenter_, epoch);
  batch.step = step;
  batch.epoch = epoch;
  batch.first_slot = slots.begin;
  if (plan_.clients) batch.clients = plan_.clients->drawn(step);
  record(step, begin);
  return batch;
}

std::span<std::int64_t const> Loader::samples_of(std::int64_t epoch, std::int64_t step,
                                                 IndexRange const& slots) {
  if (epoch != ordered_epoch_) {
    order_ = epoch_order(plan_.seed, epoch, set_.size(), runs_);
    ordered_epoch_ = epoch;
  }
  auto const first = step * plan_.global_batch + slots.begin;
  return std::span(order_).subspan(static_cast<std::size_t>(first),
                                   static_cast<std::size_t>(slots.size()));
}

void Loader::record(std::int64_t step, std::int64_t begin) const {
  if (recorder_ == nullptr || recorder_->sampled_step() < 0) return;
  recorder_->record(trace::SpanRecord{.name = span_name_,
                                      .lane = trace::Lane::loader,
                                      .t_begin = begin,
                                      .t_end = monotonic_ns(),
                                      .step = step});
}

}  // namespace stratagem
