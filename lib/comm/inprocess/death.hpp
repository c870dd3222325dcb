#pragma once

#include <cstdint>

namespace stratagem {

/// A simulated rank dies in the middle of its work: when it calls its communicator, to begin an
/// operation or to wait for one, after `calls` such calls.
struct Death {
  int rank = 0;
  std::int64_t calls = 0;
};

}  // namespace stratagem
