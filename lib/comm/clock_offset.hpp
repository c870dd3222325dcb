#pragma once

#include "comm/communicator.hpp"
#include "trace/trace_file.hpp"

namespace stratagem {

/// How far rank 0's monotonic clock is ahead of this rank's, from the shortest of 20 round trips
/// (Cristian, "Probabilistic clock synchronization", 1989). The time stamp in the answer was taken
/// at some moment of the trip, so half of the trip is the uncertainty. Ranks take turns.
/// Collective.
trace::ClockSample measure_clock_offset(Communicator& comm);

}  // namespace stratagem
