#pragma once

#include <cstdint>
#include <string>

#include "base/console/progress_line.hpp"

namespace stratagem {

enum class ProgressStyle { automatic, bar, line, none };

/// How far a run is, for people, on stderr: on a terminal one line that is redrawn and fits
/// its width, otherwise a line every 30 s or tenth of an epoch. Rank 0 shows it.
class ProgressDisplay {
 public:
  /// Automatic is a bar on a terminal and lines elsewhere. `counted`: what step() is told of, such
  /// as images.
  ProgressDisplay(ProgressStyle style, std::int64_t total_steps, std::int64_t steps_per_epoch,
                  std::int64_t epochs, std::string counted = "images");
  ~ProgressDisplay() { clear(); }

  /// After every step; `count` of all ranks.
  void step(std::int64_t done_steps, std::int64_t count, double loss);
  /// A line that stays, such as an epoch's result.
  void say(std::string const& line);
  /// Takes the bar away.
  void clear();

 private:
  Progress state(std::int64_t done, double loss, std::int64_t now) const;

  ProgressStyle style_;
  std::int64_t total_steps_, steps_per_epoch_, epochs_;
  std::int64_t started_ns_;
  std::int64_t shown_ns_;
  std::string counted_;
  std::int64_t count_ = 0;
  std::int64_t first_done_ = -1;
  bool bar_visible_ = false;
};

}  // namespace stratagem
