#pragma once

#include <string>

#include "strategy/plan.hpp"
#include "strategy/timing/step_time.hpp"

namespace stratagem {

/// What connects each rank with all others, both ways at once.
struct Link {
  double bandwidth = 0;  ///< each way [B/s]
  double latency_s = 0;  ///< of a message
};

/// "1gbit", "100mbit,20ms": bits per second and, if it is not 0, the latency. Error(usage) for what
/// is neither.
Link parse_link(std::string const& text);
/// "94.1 Gbit/s", "100 Mbit/s".
std::string bandwidth_text(double bytes_per_s);

/// `costs` where `ranks` communicate over such links, as collectives of slices that every rank
/// sends to every other do. On CPUs a transfer keeps the cores as busy as measured, and takes no
/// less; of GPUs the link counts alone. `traffic` says which operations are of fewer ranks.
StepCosts over_link(StepCosts costs, Link const& link, int ranks, Traffic const& traffic = {});

}  // namespace stratagem
