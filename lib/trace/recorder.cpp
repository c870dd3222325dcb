#include "trace/recorder.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem::trace {
namespace {

constexpr int marks_per_step = 4096;  // one per change of phase

}  // namespace

Recorder::Recorder(gpu::Device const& device, int spans_every, Sign* sign, Failpoints failpoints)
    : device_(device),
      spans_every_(spans_every),
      beacon_(sign),
      failpoints_(std::move(failpoints)),
      marks_(device, marks_per_step) {
  for (auto const name : phase_names) static_cast<void>(intern(name));
  entered_.reserve(marks_per_step);
}

NameId Recorder::intern(std::string_view name) {
  std::lock_guard const lock(names_mutex_);
  auto const known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) return static_cast<NameId>(known - names_.begin());
  names_.emplace_back(name);
  return static_cast<NameId>(names_.size()) - 1;
}

void Recorder::begin_step(std::int64_t step, std::int64_t epoch) {
  marks_.clear();
  entered_.clear();
  step_ = step;
  epoch_ = epoch;
  bool const sampled = spans_every_ > 0 && step % spans_every_ == 0;
  sampled_step_.store(sampled ? step : -1, std::memory_order_relaxed);
}

void Recorder::enter(Phase phase) {
  if (!entered_.empty() && entered_.back().first == phase) return;
  if (phase == Phase::backward && sampled_step() >= 0 && comes_from_forward()) sample_memory();
  if (int const mark = marks_.add(); mark >= 0) entered_.emplace_back(phase, mark);
  enter(static_cast<Activity>(phase), step_);  // the phases come first there, in their order
}

void Recorder::enter(Activity activity, std::int64_t step) {
  beacon_.enter(activity, step);
  failpoints_.reach(activity_names[static_cast<std::size_t>(activity)], step);
}

/// Whether a backward pass that begins now is a pass's first part, not what follows a wait in it.
bool Recorder::comes_from_forward() const {
  for (auto entry = entered_.rbegin(); entry != entered_.rend(); ++entry)
    if (entry->first == Phase::forward || entry->first == Phase::backward)
      return entry->first == Phase::forward;
  return true;
}

StepRecord Recorder::end_step() {
  int const end = marks_.add();
  {
    Beacon::Wait const wait(&beacon_, "the device");
    marks_.resolve();
  }
  enter(Activity::between, step_);
  StepRecord record{.step = step_, .epoch = epoch_};
  if (entered_.empty() || end < 0) return record;
  record.t_begin = marks_.ns(entered_.front().second);
  record.duration = marks_.ns(end) - record.t_begin;
  for (std::size_t i = 0; i < entered_.size(); ++i) {
    auto const until = i + 1 < entered_.size() ? entered_[i + 1].second : end;
    auto const [phase, from] = entered_[i];
    record.durations[static_cast<std::size_t>(phase)] += marks_.ns(until) - marks_.ns(from);
    if (sampled_step() >= 0)
      this->record(SpanRecord{.name = static_cast<NameId>(phase),
                              .lane = Lane::compute,
                              .t_begin = marks_.ns(from),
                              .t_end = marks_.ns(until),
                              .step = step_});
  }
  entered_.clear();
  auto const waited = record.durations[static_cast<std::size_t>(Phase::comm_exposed)];
  beacon_.end_step(record.duration - waited);
  return record;
}

std::string Recorder::where() const {
  if (step_ < 0) return "before the first step";
  if (entered_.empty()) return str("after step ", step_);
  return str("at step ", step_, ", ", phase_names[static_cast<std::size_t>(entered_.back().first)]);
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
