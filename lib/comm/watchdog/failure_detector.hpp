#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/system.hpp"
#include "comm/watchdog/status_table.hpp"
#include "comm/watchdog/watchdog_config.hpp"
#include "trace/heartbeat_status.hpp"

namespace stratagem {

/// How long a rank may stay in an activity without a mark. Empty if unknown: between steps, and
/// before the activity has ended for the first time.
std::optional<std::chrono::nanoseconds> limit_of(
    WatchdogConfig const& config, trace::Activity activity,
    trace::HeartbeatStatus::Stretches const& stretches);

/// The state of a slot at one look.
struct Glance {
  Presence presence = Presence::watched;
  std::uint64_t beats = 0, marks = 0, communication_beats = 0;
  bool waits = false;         ///< its training waits for other ranks
  bool communicates = false;  ///< operations are in flight
  std::int64_t busy_ns = 0;   ///< of a step; 0: not known
};
Glance look_at(Slot const& slot);

/// Finds faults on a node from a series of looks, from the point of view of one of its ranks. On
/// this rank: its training or its communication stands still. On the others: their watchdogs stand
/// still. Ages count only time that this rank has seen: after a gap, for example when the whole job
/// was stopped, all begin again.
class FailureDetector {
 public:
  /// This is slot `own` of `ranks`.
  FailureDetector(WatchdogConfig const& config, std::size_t own, std::size_t ranks);

  struct Accusation {
    std::size_t slot = 0;
    Finding finding = Finding::none;
    std::chrono::nanoseconds age{};  ///< since the last sign of life
  };
  /// The state of a slot's process, if this rank can see it.
  using AskSystem = std::function<std::optional<ProcessState>(std::size_t slot)>;
  /// `elapsed`: since the previous look; `limit`: of what this rank is doing.
  std::vector<Accusation> look(std::chrono::nanoseconds elapsed, std::span<Glance const> glances,
                               std::optional<std::chrono::nanoseconds> limit,
                               AskSystem const& process);

  /// How long another slot has been silent.
  std::chrono::nanoseconds silence_of(std::size_t slot) const { return beats_[slot].age; }

  static constexpr std::chrono::milliseconds longest_look{1000};  ///< anything longer is a gap

 private:
  /// How long a counter has stood still.
  struct Stillness {
    std::uint64_t last = 0;
    std::chrono::nanoseconds age{};

    void see(std::uint64_t value, std::chrono::nanoseconds elapsed);
  };

  std::optional<Accusation> look_at_self(Glance const& self, std::chrono::nanoseconds elapsed,
                                         std::optional<std::chrono::nanoseconds> limit,
                                         AskSystem const& process);
  std::optional<Accusation> look_at_peer(std::size_t slot, std::optional<ProcessState> process);

  /// Limits: for certain findings; for other nodes; for findings with other possible causes.
  std::chrono::nanoseconds floor_, far_, long_;
  std::size_t own_;
  Stillness training_, communication_;  ///< of this rank
  std::vector<Stillness> beats_;        ///< of the others' watchdogs
};

}  // namespace stratagem
