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

/// Where faults can be injected: the phases of a step, named as in the trace; a parameter server
/// that handles gradients; what a run does between steps; the writing of files.
inline constexpr std::array<std::string_view, 16> failpoint_sites{
    "data",       "forward",     "backward",    "comm_exposed", "optimizer", "serve",
    "between",    "init",        "evaluate",    "save",         "finish",    "save_write",
    "save_fsync", "save_rename", "trace_flush", "last_words"};

/// Faults that a test injects into one rank of a run: `site:rank:step:action`, separated by commas.
/// Rank and step are numbers, or * for all. A fault happens whenever its rank reaches its site in
/// its step. The actions:
///   kill, stop, segv, abort    sends this signal (SIGKILL, SIGSTOP, ...) to its own process
///   exit                       ends the process with code 0, as after success
///   spin                       never returns
///   throw                      throws std::runtime_error
///   nospace                    throws Error(io), as for a full disk
///   delay=MS                   waits this many milliseconds
///   corrupt                    flips a bit of the bytes passed to corrupt()
/// Only builds with STRATAGEM_FAILPOINTS support them; others refuse every text except the empty
/// one. A value, passed to everything that has sites. Without faults, a site costs almost nothing.
class Failpoints {
 public:
  Failpoints() = default;  ///< none
  /// Error(usage) if the text is not understood, or if this build cannot inject faults.
  Failpoints(std::string_view text, int rank);

  bool empty() const { return points_.empty(); }
  /// Called when the program reaches `site`, from any thread.
  void reach(std::string_view site, std::int64_t step = 0) const {
    if (!points_.empty()) act(site, step);
  }
  /// The same, with data: flips one bit in the middle of it. True if it did.
  bool corrupt(std::string_view site, std::int64_t step, std::span<std::byte> data) const {
    return !points_.empty() && flip(site, step, data);
  }

 private:
  enum class Action { kill, stop, segv, abort, exit, spin, fail, nospace, delay, corrupt };
  struct Point {
    std::string_view site;             ///< of failpoint_sites
    std::optional<std::int64_t> step;  ///< empty: every step
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
