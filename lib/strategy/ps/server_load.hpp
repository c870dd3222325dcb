#pragma once

#include <cstdint>
#include <string_view>

#include "optim/optim_config.hpp"
#include "strategy/ps/server_policy.hpp"

namespace stratagem {

/// How busy servers will be.
struct ServerLoad {
  double pass_s = 0;       ///< a worker computes the gradient of a share
  double push_s = 0;       ///< the busiest server works on one worker's push
  double utilisation = 0;  ///< of that server; beyond 1 it is more than it can do
  int servers_needed = 1;  ///< to stay at `most_utilisation`
};

/// Beyond it pushes queue up, and gradients grow old.
inline constexpr double most_utilisation = 0.7;

/// How much a server has to do for a push of this policy: "sum", "each", "corrected" or
/// "look_ahead".
std::string_view server_work(ServerPolicy const& policy);

/// The time of a server for one push to a shard of `elements` fp32 parameters, measured on this
/// machine, with a part of the shard where it is large: to take the gradient out of a message, to
/// apply it, and to put parameters into another.
double measure_push(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                    std::int64_t elements);

/// Of workers that each compute, push, and wait for the busiest of `servers`.
ServerLoad predict_load(double pass_s, double push_s, int workers, int servers);

}  // namespace stratagem
