#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "comm/watchdog/watchdog_config.hpp"

namespace stratagem {

/// Which workers are missing: a worker from which nothing has come for much longer than its last
/// push took it, so that gates should not wait for it. Nobody is before a first push, nor where the
/// watchdog is off. Times are those that the server itself has seen: a stop of the whole job is
/// none.
class WorkerLiveness {
 public:
  WorkerLiveness(WatchdogConfig const& config, int workers);

  /// To be called again and again. Those who are missing from now on.
  std::vector<int> look(std::chrono::nanoseconds now);
  /// A push of the worker is expected from now on.
  void expect(int worker);
  bool missing(int worker) const { return workers_[static_cast<std::size_t>(worker)].missing; }
  /// A part of its push has come; true when it was missing.
  bool came(int worker);
  /// Its push has come; true when it was missing.
  bool arrived(int worker);
  /// It makes no more pushes in this round; true when it was missing.
  bool finished(int worker);

  /// A look that comes later than this after the one before is one after a stop.
  static constexpr std::chrono::milliseconds longest_look{1000};

 private:
  struct Worker {
    bool expected = false;
    bool missing = false;
    std::chrono::nanoseconds since{};                ///< in `seen_`
    std::optional<std::chrono::nanoseconds> took{};  ///< its last push
  };
  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  std::chrono::nanoseconds limit_of(Worker const& worker) const;

  WatchdogConfig config_;
  std::optional<std::chrono::nanoseconds> last_look_;
  std::chrono::nanoseconds seen_{};  ///< by all looks
  std::vector<Worker> workers_;
};

}  // namespace stratagem
