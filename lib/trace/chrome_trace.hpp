#pragma once

#include <ostream>

#include "trace/collect.hpp"

namespace stratagem {

/// Writes a run's traces as JSON in the Trace Event Format, which Perfetto and chrome://tracing
/// open: a process per rank, in it every step, the lanes of the sampled ones and a server's
/// updates, with counters of memory and device. Times are microseconds on rank 0's clock from the
/// first event.
void write_chrome_trace(trace::RunTraces const& traces, std::ostream& out);

}  // namespace stratagem
