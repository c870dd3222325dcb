#pragma once

#include <ostream>

#include "trace/collect.hpp"

namespace stratagem {

/// Writes a run's traces as JSON in the Trace Event Format, which Perfetto and chrome://tracing
/// open. Each rank is a process with every step, the lanes of the sampled steps, a server's
/// updates, and counters of memory and device. Times are microseconds on rank 0's clock since the
/// first event.
void write_chrome_trace(trace::RunTraces const& traces, std::ostream& out);

}  // namespace stratagem
