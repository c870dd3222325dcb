#pragma once

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

/// Of workers that each compute, push, and wait for the busiest of `servers`.
ServerLoad predict_load(double pass_s, double push_s, int workers, int servers);

}  // namespace stratagem
