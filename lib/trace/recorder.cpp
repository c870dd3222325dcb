#include "trace/recorder.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem::trace {

Recorder::Recorder(gpu::Device const& device, int spans_every, Sign* sign, Failpoints failpoints)
    : device_(device),
      spans_every_(spans_every),
      heartbeat_(sign),
      failpoints_(std::move(failpoints)),
      marks_{StepMarks(device), StepMarks(device)} {
  for (auto const name : phase_names) static_cast<void>(intern(name));
}

NameId Recorder::intern(std::string_view name) {
  std::lock_guard const lock(names_mutex_);
  auto const known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) return static_cast<NameId>(known - names_.begin());
  names_.emplace_back(name);
  return static_cast<NameId>(names_.size()) - 1;
}

void Recorder::begin_step(std::int64_t step, std::int64_t epoch) {
  present_ = 1 - present_;
  present().begin(step, epoch);
  sampled_step_.store(samples(step) ? step : -1, std::memory_order_relaxed);
}

void Recorder::enter(Phase phase) {
  auto& marks = present();
  if (marks.in_phase() && marks.phase() == phase) return;
  if (phase == Phase::backward && marks.comes_from_forward()) note_memory();
  marks.enter(phase);
  enter(static_cast<Activity>(phase), marks.step());  // Activity begins with the phases
}

void Recorder::note_memory() {
  if (keeping_ != nullptr && keeping_->at_backward.total() == 0)
    keeping_->at_backward = gpu::live_memory(device_);
  if (sampled_step() >= 0) sample_memory();
}

Recorder::KeptPhases Recorder::keep(std::function<void()> const& body) {
  KeptPhases kept;
  auto const before = present().entered();
  keeping_ = &kept;
  try {
    body();
  } catch (...) {
    keeping_ = nullptr;
    present().return_to(before);
    throw;
  }
  keeping_ = nullptr;
  kept.of_step = present().entered_since(before);
  return kept;
}

std::vector<void*> Recorder::repeat(KeptPhases const& kept) {
  if (sampled_step() >= 0) sample_memory(kept.at_backward);
  if (!kept.of_step.phases.empty())
    enter(static_cast<Activity>(kept.of_step.phases.front()), present().step());
  return present().expect(kept.of_step);
}

void Recorder::enter(Activity activity, std::int64_t step) {
  heartbeat_.enter(activity, step);
  failpoints_.reach(activity_names[static_cast<std::size_t>(activity)], step);
}

void Recorder::end_step(StepOutcome const& outcome) {
  present().end(outcome);
  settle();  // records the previous step
  unrecorded_ = &present();
  if (device_.kind == gpu::DeviceKind::cpu) settle();
  enter(Activity::between, present().step());
}

void Recorder::settle() {
  if (unrecorded_ == nullptr) return;
  auto& marks = *std::exchange(unrecorded_, nullptr);
  {
    HeartbeatStatus::Wait const wait(&heartbeat_, "the device");
    last_step_ = marks.resolve(last_step_.t_begin + last_step_.duration);
  }
  record(last_step_);
  if (last_step_.duration == 0) return;  // there was no room for its marks
  if (samples(last_step_.step))
    marks.for_each_stretch([this](Phase phase, std::int64_t begin, std::int64_t end) {
      record(SpanRecord{.name = static_cast<NameId>(phase),
                        .lane = Lane::compute,
                        .t_begin = begin,
                        .t_end = end,
                        .step = last_step_.step});
    });
  auto const waited = last_step_.durations[static_cast<std::size_t>(Phase::comm_exposed)];
  heartbeat_.end_step(last_step_.duration - waited);
}

std::string Recorder::where() const {
  auto const& marks = marks_[present_];
  if (marks.step() < 0) return "before the first step";
  if (!marks.in_phase()) return str("after step ", marks.step());
  return str("at step ", marks.step(), ", ", phase_names[static_cast<std::size_t>(marks.phase())]);
}

void Recorder::event(Severity severity, std::string_view name, std::string_view text) {
  auto const name_id = intern(name), text_id = intern(text);
  std::lock_guard const lock(events_mutex_);
  events_.push({.t = monotonic_ns(), .severity = severity, .name = name_id, .text = text_id});
}

void Recorder::sample_memory() {
  sample_memory(gpu::live_memory(device_));
}

void Recorder::sample_memory(gpu::MemoryUse const& use) {
  memory_.push({.t = monotonic_ns(),
                .use = use,
                .reserved = gpu::reserved_memory(device_),
                .rss = resident_bytes()});
}

}  // namespace stratagem::trace
