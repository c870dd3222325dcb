#include "predict/server_load.hpp"

#include <algorithm>
#include <cmath>

namespace stratagem {

ServerLoad predict_load(double pass_s, double push_s, int workers, int servers) {
  // Of the whole model on one server, n pushes of work s in the cycle p + s of a worker; k servers
  // divide s: n s / k = u (p + s / k) gives the k for a utilisation u.
  auto const whole = push_s * servers;
  auto const needed = whole * (workers - most_utilisation) / (most_utilisation * pass_s);
  return {.pass_s = pass_s,
          .push_s = push_s,
          .utilisation = workers * push_s / (pass_s + push_s),
          .servers_needed = std::max(1, static_cast<int>(std::ceil(needed)))};
}

}  // namespace stratagem
