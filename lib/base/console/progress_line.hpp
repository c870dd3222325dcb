#pragma once

#include <cstdint>
#include <string>

namespace stratagem {

/// How far a run is.
struct Progress {
  std::int64_t done_steps = 0, total_steps = 0;
  std::int64_t epoch = 0, epochs = 0;  ///< counted from 1
  double loss = 0;
  std::int64_t per_s = 0;          ///< of what is counted
  std::string counted = "images";  ///< or tokens
  double left_s = 0;
};

/// All of it in one line.
std::string progress_line(Progress const& progress);

/// The same behind a bar, in at most `columns` characters: the bar becomes shorter, then it is left
/// out, then the speed, the loss, the epoch, the time; 0 is as long as it takes.
std::string progress_bar(Progress const& progress, int columns);

}  // namespace stratagem
