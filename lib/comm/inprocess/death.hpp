#pragma once

#include <cstdint>

namespace stratagem {

/// A simulated rank ends in the midst of things: as it comes to its communicator, to begin an
/// operation or to wait for one, after it has done so `calls` times.
struct Death {
  int rank = 0;
  std::int64_t calls = 0;
};

}  // namespace stratagem
