#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// Where faults can be planted: the phases of a step as the trace names them, a parameter server
/// that treats gradients, what a run does around its steps, and the writing of files.
inline constexpr std::array<std::string_view, 16> failpoint_sites{
    "data",       "forward",     "backward",    "comm_exposed", "optimizer", "serve",
    "between",    "init",        "evaluate",    "save",         "finish",    "save_write",
    "save_fsync", "save_rename", "trace_flush", "last_words"};

/// Faults that a test plants in one rank of a run: `site:rank:step:action`, several with commas
/// between them, where rank and step are numbers or * for all. One happens whenever its rank comes
/// to its site in its step. The actions:
///   kill, stop, segv, abort    the signal (SIGKILL, SIGSTOP, ...) to the own process
///   exit                       ends the process with code 0, as if all were done
///   spin                       never returns
///   throw                      std::runtime_error
///   nospace                    Error(io), as of a full disk
///   delay=MS                   goes on so many milliseconds later
///   corrupt                    flips a bit of what the site hands to corrupt()
/// Only builds with STRATAGEM_FAILPOINTS have them; others refuse every text but the empty one. A
/// value, handed to all that have sites; where nothing is planted a site costs next to nothing.
class Failpoints {
 public:
  Failpoints() = default;  ///< none
  /// Error(usage) for a text that cannot be understood, or that this build cannot honour.
  Failpoints(std::string_view text, int rank);

  bool empty() const { return points_.empty(); }
  /// The program is at `site`. Any thread may say so.
  void reach(std::string_view site, std::int64_t step = 0) const {
    if (!points_.empty()) act(site, step);
  }
  /// Likewise, with what lies there: one bit in its middle becomes another. True when it did.
  bool corrupt(std::string_view site, std::int64_t step, std::span<std::byte> data) const {
    return !points_.empty() && flip(site, step, data);
  }

 private:
  enum class Action { kill, stop, segv, abort, exit, spin, fail, nospace, delay, corrupt };
  struct Point {
    std::string_view site;             ///< of failpoint_sites
    std::optional<std::int64_t> step;  ///< nothing: every one
    Action action;
    std::chrono::milliseconds delay;

    bool is_at(std::string_view place, std::int64_t number) const {
      return site == place && (!step || *step == number);
    }
  };

  static Point parse(std::string const& text, std::span<std::string const> fields);
  void act(std::string_view site, std::int64_t step) const;
  bool flip(std::string_view site, std::int64_t step, std::span<std::byte> data) const;
  static void act(Point const& point);

  std::vector<Point> points_;  ///< of this rank
};

}  // namespace stratagem
