#include "data/loader.hpp"

#include "base/clock.hpp"
#include "base/contract.hpp"

namespace stratagem {

Loader::Loader(Dataset const& dataset, InputFormat const& format, LoadPlan const& plan,
               trace::Recorder* recorder)
    : set_(dataset.train),
      maker_(dataset, format),
      plan_(plan),
      augmenter_(plan.augment, plan.seed, dataset.may_flip),
      recorder_(recorder) {
  expects(steps_per_epoch(set_.size(), plan.global_batch) > 0, "an epoch has a step");
  expects(0 <= plan.first_step, "steps are counted from 0");
  if (recorder_ != nullptr) span_name_ = recorder_->intern("prepare_batch");
  thread_ = std::jthread([this](std::stop_token const& stop) { run(stop); });
}

std::optional<Batch> Loader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || finished_; });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  auto batch = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return maker_.deliver(std::move(batch));
}

void Loader::run(std::stop_token const& stop) {
  std::exception_ptr failure;
  try {
    gpu::select(maker_.device());  // whose driver pins the host memory
    for (auto step = plan_.first_step; step < plan_.end_step; ++step) {
      auto batch = prepare(step);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return ready_.size() < batches_ahead; });
      if (stop.stop_requested()) return;
      ready_.push_back(std::move(batch));
      lock.unlock();
      changed_.notify_all();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  {
    std::lock_guard const lock(mutex_);
    failure_ = failure;
    finished_ = true;
  }
  changed_.notify_all();
}

Batch Loader::prepare(std::int64_t step) {
  auto const begin = monotonic_ns();
  auto const steps = steps_per_epoch(set_.size(), plan_.global_batch);
  auto const epoch = step / steps;
  if (epoch != ordered_epoch_) {
    order_ = epoch_order(plan_.seed, epoch, set_.size());
    ordered_epoch_ = epoch;
  }
  auto const slots = plan_.slice.of_batch(plan_.global_batch);
  auto const first = step % steps * plan_.global_batch + slots.begin;
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < slots.size(); ++i) {
    auto const image = order_[static_cast<std::size_t>(first + i)];
    samples.push_back({image, augmenter_.move(epoch, image)});
  }
  auto batch = maker_.gather(set_, samples);
  batch.step = step;
  batch.epoch = epoch;
  batch.first_slot = slots.begin;
  record(step, begin);
  return batch;
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
