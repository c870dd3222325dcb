#include "strategy/ps/server_load.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "strategy/ps/parameter_store.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t most_elements = 1 << 22;  // beyond what caches hold
constexpr int repeats = 5, workers = 2;

/// One push of each worker.
void serve(ParameterStore& store, ServerPolicy const& policy, at::Tensor const& message) {
  FlatRange const all{0, message.numel()};
  for (int worker = 0; worker < workers; ++worker) store.slot(worker).copy_(message);
  if (!policy.asynchronous()) {
    store.add_up(all);
    store.apply_sum(all, 0, 1);
    store.publish(all, 0);
  }
  for (int worker = 0; worker < workers; ++worker) {
    if (policy.asynchronous()) {
      store.take(worker, {}, policy.count == 1);
      store.hand_out(worker, 0);
    }
    message.copy_(policy.asynchronous() ? store.handed(worker) : store.outgoing());
  }
  if (policy.count > 1) store.apply_collected();
}

}  // namespace

std::string_view server_work(ServerPolicy const& policy) {
  if (policy.momentum != ServerPolicy::Momentum::shared) return "look_ahead";
  if (policy.correction > 0) return "corrected";
  return policy.asynchronous() ? "each" : "sum";
}

double measure_push(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                    std::int64_t elements) {
  auto const part = std::min(elements, most_elements);
  ParameterStore store(policy, optimizer, workers, at::zeros({part}));
  auto const message = at::zeros({part});
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < repeats; ++i) {
    auto const begin = monotonic_ns();
    serve(store, policy, message);
    best = std::min(best, monotonic_ns() - begin);
  }
  auto const scale = static_cast<double>(elements) / static_cast<double>(part);
  return static_cast<double>(best) * 1e-9 * scale / workers;
}

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
