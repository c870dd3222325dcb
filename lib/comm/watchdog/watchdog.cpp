#include "comm/watchdog/watchdog.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;
using trace::Activity;
using trace::activity_names;

constexpr auto period = 100ms;
constexpr int sure_looks = 2;  // looks before the end: there may be more than one culprit
constexpr int looks_for_a_save = 30s / period;
constexpr unsigned last_words_s = 2;
constexpr auto time_of_others = 800ms;
constexpr auto time_of_launcher = 300ms;
// Less than a launcher takes to end the remaining ranks when a node has lost power.
constexpr std::chrono::nanoseconds silence_of_a_lost_node = 900ms;

std::string place_of(trace::Sign const& sign) {
  auto const name = activity_names[static_cast<std::size_t>(sign.activity.load())];
  auto const step = sign.step.load();
  return step < 0 ? std::string(name) : str("step ", step, ", ", name);
}

std::string name_of(Slot const& slot) {
  return str("rank ", slot.rank.load(), " (process ", slot.process.load(), ")");
}

/// Whether the rank or node is lost, as opposed to hanging.
bool is_lost(Slot const& slot, Finding finding) {
  bool const node_is_silent = slot.process == 0 && finding != Finding::none;
  return node_is_silent || finding == Finding::gone || finding == Finding::orphaned;
}

/// Ends the process in two seconds, even if something blocks it: a disk, or a lock held by a rank
/// that stands still.
void limit_last_words(ExitCode code) {
  std::signal(
      SIGALRM, code == ExitCode::stall ? +[](int) { ::_exit(to_int(ExitCode::stall)); }
                                       : +[](int) { ::_exit(to_int(ExitCode::peer_lost)); });
  ::alarm(last_words_s);
  // The reader of this rank's output may be gone.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace

Watchdog::Watchdog(WatchdogConfig const& config, StatusTable const& status_table,
                   trace::HeartbeatStatus const& heartbeat, Watched const& self,
                   Reactions reactions)
    : config_(config),
      slots_(status_table.slots()),
      own_(status_table.own()),
      heartbeat_(heartbeat),
      on_gpu_(self.on_gpu),
      reactions_(std::move(reactions)),
      detector_(config, own_, slots_.size()),
      parent_(::getppid()),
      slow_ranks_(slots_.size()) {
  own().vital = self.vital;
  own().presence = Presence::watched;
  thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  own().presence = Presence::left;
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::run() {
  name_thread("watchdog");
  auto last = monotonic_ns();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return stopping_; })) {
    lock.unlock();
    auto const now = monotonic_ns();
    look(std::chrono::nanoseconds(now - std::exchange(last, now)));
    lock.lock();
  }
}

void Watchdog::look(std::chrono::nanoseconds elapsed) {
  ++own().beats;
  std::vector<Glance> glances;
  for (auto const* slot : slots_) glances.push_back(look_at(*slot));
  // At the start, the thread that sends heartbeats between nodes may be busy with memory for
  // seconds.
  if (heartbeat_.sign().activity == Activity::init)
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i]->process == 0) glances[i].presence = Presence::absent;
  publish(detector_.look(elapsed, glances, own_limit(),
                         [this](std::size_t slot) { return process_of(slot); }));
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i]->process == 0) slots_[i]->found_after_ns = detector_.silence_of(i).count();
  act();
  tell_of_slow(elapsed, glances);
}

std::optional<std::chrono::nanoseconds> Watchdog::own_limit() const {
  auto const activity = heartbeat_.sign().activity.load();
  bool const hides_waits =
      on_gpu_ && (activity == Activity::comm_exposed || activity == Activity::optimizer);
  return hides_waits ? std::nullopt : limit_of(config_, activity, heartbeat_.stretches(activity));
}

void Watchdog::publish(std::vector<FailureDetector::Accusation> const& accusations) {
  std::vector<Finding> found(slots_.size(), Finding::none);
  if (is_orphaned()) found[own_] = Finding::orphaned;
  for (auto const& [slot, finding, age] : accusations) {
    slots_[slot]->found_after_ns = age.count();
    found[slot] = finding;
  }
  // A rank that continues is no longer suspected.
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (found[i] != Finding::none || i == own_ || slots_[i]->process == 0)
      slots_[i]->finding = found[i];
}

bool Watchdog::is_orphaned() {
  if (::getppid() == parent_) return false;
  ++looks_as_orphan_;
  bool const saves = reactions_.saves && reactions_.saves();
  return !saves || looks_as_orphan_ > looks_for_a_save;
}

void Watchdog::act() {
  fatal_looks_ = fatal() ? fatal_looks_ + 1 : 0;
  if (fatal_looks_ >= sure_looks) end();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto const& slot = *slots_[i];
    auto const finding = slot.finding.load();
    if (finding == Finding::none && told_.erase(i) > 0 && speaks())
      reactions_.tell(name_of(slot) + " is back");
    if (finding == Finding::none || slot.vital || slot.presence != Presence::watched) continue;
    if (told_.insert(i).second && speaks())
      reactions_.tell(describe(slot, finding) + "; the others continue without it");
  }
}

bool Watchdog::fatal() const {
  return std::ranges::any_of(slots_, [](Slot const* slot) {
    auto const finding = slot->finding.load();
    bool const lost = finding == Finding::orphaned;
    return finding != Finding::none && (slot->vital || lost) && slot->presence == Presence::watched;
  });
}

bool Watchdog::speaks() const {
  for (std::size_t i = 0; i < own_; ++i)
    if (slots_[i]->presence == Presence::watched && slots_[i]->finding == Finding::none)
      return false;
  return true;
}

void Watchdog::tell_of_slow(std::chrono::nanoseconds elapsed, std::span<Glance const> glances) {
  for (auto const i : slow_ranks_.look(elapsed, glances)) {
    auto const text = str(name_of(*slots_[i]), " is slow: for ", SlowRanks::lasts.count(),
                          " s, each of its steps took it at least ",
                          format_duration(1e-9 * static_cast<double>(glances[i].busy_ns)),
                          ", more than 1.5 times what the others take");
    if (speaks()) reactions_.tell(text);
    if (i == own_) reactions_.mark(text);
  }
}

void Watchdog::end() {
  auto const failure = known_failure().value_or(Error(ExitCode::stall, "a rank hangs"));
  limit_last_words(failure.code());
  reactions_.end({failure, speaks()});
  await_last_words();
  auto const sound = std::ranges::count_if(slots_, [](Slot const* slot) {
    return slot->process != 0 && slot->presence == Presence::watched &&
           slot->finding == Finding::none;
  });
  if (speaks() && sound > 1) end_stopped();
  std::_Exit(to_int(failure.code()));
}

void Watchdog::await_last_words() {
  own().has_spoken = true;
  auto const deadline = monotonic_ns() + std::chrono::nanoseconds(time_of_others).count();
  auto const able = [](Finding finding) {
    return finding == Finding::none || finding == Finding::stalled || finding == Finding::mute;
  };
  auto const speaking = [&](Slot const* slot) {
    return slot->process != 0 && slot->presence == Presence::watched && able(slot->finding) &&
           !slot->has_spoken;
  };
  while (std::ranges::any_of(slots_, speaking) && monotonic_ns() < deadline)
    std::this_thread::sleep_for(10ms);
}

void Watchdog::end_stopped() const {
  // The launcher should do it, once another rank has ended with a code that tells the reason.
  std::this_thread::sleep_for(time_of_launcher);
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i]->finding == Finding::stopped && process_of(i) == ProcessState::stopped)
      ::kill(static_cast<pid_t>(slots_[i]->process.load()), SIGKILL);
}

std::string Watchdog::describe(Slot const& slot, Finding finding) const {
  auto const age = format_duration(1e-9 * static_cast<double>(slot.found_after_ns.load()));
  if (slot.process == 0)
    return str("the node of rank ", slot.rank.load(), " has not been heard of for ", age);
  auto const place = place_of(slot.sign);
  auto const name = name_of(slot);
  switch (finding) {
    case Finding::none:
      return str(name, ": ", place);
    case Finding::stalled:
      return str(name, " hangs at ", place, ", for ", age);
    case Finding::mute:
      return str(name, ", at ", place, ": its communication has hung for ", age);
    case Finding::stopped:
      return str(name, " was stopped by a signal, at ", place, ", ", age, " ago");
    case Finding::silent:
      return str(name, " has not run for ", age, ", at ", place);
    case Finding::gone:
      return str(name, " is gone, last seen at ", place);
    case Finding::orphaned:
      return str(name, ", at ", place, ", has lost its launcher");
  }
  return name;
}

std::optional<ProcessState> Watchdog::process_of(std::size_t slot) const {
  if (slots_[slot]->process_space != own().process_space) return std::nullopt;
  return process_state(slots_[slot]->process);
}

std::optional<Error> Watchdog::known_failure() const {
  std::vector<std::string> found, gone;
  bool lost = false;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto const& slot = *slots_[i];
    auto const finding = slot.finding.load();
    if (slot.presence != Presence::watched) continue;
    bool const matters = slot.vital || finding == Finding::orphaned;
    lost = lost || is_lost(slot, finding);
    if (finding != Finding::none && matters)
      found.push_back(describe(slot, finding));
    else if (!slot.has_spoken && process_of(i) == ProcessState::gone)
      gone.push_back(describe(slot, Finding::gone));
  }
  if (found.empty() && gone.empty()) return std::nullopt;
  lost = lost || found.empty();
  return Error(
      lost ? ExitCode::peer_lost : ExitCode::stall, join(found.empty() ? gone : found, "; "),
      "the others cannot continue",
      lost ? "look at the first rank that ended" : "look at it, or raise watchdog.floor_s");
}

std::string Watchdog::silent_node() const {
  for (auto const* slot : slots_)
    if (slot->process == 0 && slot->presence == Presence::watched &&
        slot->found_after_ns > silence_of_a_lost_node.count())
      return describe(*slot, Finding::silent);
  return {};
}

std::string Watchdog::at_work() const {
  std::vector<std::string> texts;
  // A rank that has just given up waiting does not count.
  auto const recent = monotonic_ns() - std::chrono::nanoseconds(1s).count();
  for (auto const* slot : slots_)
    if (slot->presence == Presence::watched && slot->process != 0 && !slot->sign.waits &&
        slot->sign.since_ns < recent)
      texts.push_back(describe(*slot, Finding::none));
  return join(texts, "; ");
}

}  // namespace stratagem
