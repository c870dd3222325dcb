#include "comm/watchdog/failure_detector.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using trace::Activity;

constexpr std::int64_t enough_stretches = 20;
constexpr double caution = 2;     // with fewer samples, so many times the limit
constexpr auto first_doubt = 1s;  // of silence; from then on, the system is asked about a process
constexpr double distance = 1.5;  // factor for heartbeats from other nodes

nanoseconds seconds(double value) {
  return nanoseconds(saturated(value * 1e9));
}

}  // namespace

std::optional<nanoseconds> limit_of(WatchdogConfig const& config, Activity activity,
                                    trace::HeartbeatStatus::Stretches const& stretches) {
  if (activity > Activity::serve || stretches.count == 0) return std::nullopt;
  auto const factor = config.factor * (stretches.count < enough_stretches ? caution : 1);
  auto const usual = static_cast<double>(stretches.p99_ns) * 1e-9;
  return seconds(std::max(config.floor_s, factor * usual));
}

Glance look_at(Slot const& slot) {
  auto const& sign = slot.sign;
  return {.presence = slot.presence,
          .beats = slot.beats,
          .marks = sign.marks,
          .communication_beats = sign.beats,
          .waits = sign.waits,
          .communicates = sign.submitted != sign.finished && sign.activity != Activity::init,
          .busy_ns = sign.busy_ns};
}

FailureDetector::FailureDetector(WatchdogConfig const& config, std::size_t own, std::size_t ranks)
    : floor_(seconds(config.floor_s)),
      far_(seconds(config.floor_s * distance)),
      long_(seconds(config.floor_s * std::max(config.factor, 1.0))),
      own_(own),
      beats_(ranks) {}

void FailureDetector::Stillness::see(std::uint64_t value, nanoseconds elapsed) {
  age = value == last ? age + elapsed : 0ns;
  last = value;
}

std::vector<FailureDetector::Accusation> FailureDetector::look(nanoseconds elapsed,
                                                               std::span<Glance const> glances,
                                                               std::optional<nanoseconds> limit,
                                                               AskSystem const& process) {
  std::vector<Accusation> accusations;
  if (elapsed > longest_look) {
    training_.age = communication_.age = 0ns;
    for (auto& beats : beats_) beats.age = 0ns;
    elapsed = 0ns;
  }
  if (auto const found = look_at_self(glances[own_], elapsed, limit, process))
    accusations.push_back(*found);
  for (std::size_t slot = 0; slot < glances.size(); ++slot) {
    if (slot == own_ || glances[slot].presence != Presence::watched) continue;
    beats_[slot].see(glances[slot].beats, elapsed);
    if (beats_[slot].age < first_doubt) continue;
    if (auto const found = look_at_peer(slot, process(slot))) accusations.push_back(*found);
  }
  return accusations;
}

std::optional<FailureDetector::Accusation> FailureDetector::look_at_self(
    Glance const& self, nanoseconds elapsed, std::optional<nanoseconds> limit,
    AskSystem const& process) {
  training_.see(self.marks, elapsed);
  communication_.see(self.communication_beats, elapsed);
  if (self.waits) training_.age = 0ns;
  if (!self.communicates) communication_.age = 0ns;
  bool const doubtful = std::max(training_.age, communication_.age) > first_doubt;
  if (doubtful && process(own_) == ProcessState::traced) training_.age = communication_.age = 0ns;
  if (limit && training_.age > *limit) return {{own_, Finding::stalled, training_.age}};
  if (communication_.age > long_) return {{own_, Finding::mute, communication_.age}};
  return std::nullopt;
}

std::optional<FailureDetector::Accusation> FailureDetector::look_at_peer(
    std::size_t slot, std::optional<ProcessState> process) {
  auto& age = beats_[slot].age;
  auto const found = [&](Finding finding, nanoseconds limit) -> std::optional<Accusation> {
    if (age <= limit) return std::nullopt;
    return {{slot, finding, age}};
  };
  if (!process) return found(Finding::silent, far_);
  switch (*process) {
    case ProcessState::gone:
      return found(Finding::gone, floor_);
    case ProcessState::stopped:
      return found(Finding::stopped, floor_);
    case ProcessState::traced:
      age = 0ns;  // somebody is debugging it
      return std::nullopt;
    case ProcessState::lives:
      return found(Finding::silent, long_);
  }
  return std::nullopt;
}

}  // namespace stratagem
