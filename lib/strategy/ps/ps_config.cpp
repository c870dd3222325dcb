#include "strategy/ps/ps_config.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using Gate = ServerPolicy::Gate;
using Momentum = ServerPolicy::Momentum;
using Weight = ServerPolicy::Weight;

ServerPolicy preset(PsMode mode, int workers) {
  switch (mode) {
    case PsMode::sync:
      return {.gate = Gate::bsp};
    case PsMode::async:
      return {};
    case PsMode::ssp:
      return {.gate = Gate::ssp, .staleness = 2};
    case PsMode::lag_cap:
      return {.lag_cap = workers};
    case PsMode::dana:
      return {.momentum = Momentum::look_ahead};
    case PsMode::dc:
      return {.correction = 0.04};
  }
  return {};
}

void refuse_parts_of_sync(PsConfig const& config) {
  char const* part = config.staleness   ? "staleness"
                     : config.lag_cap   ? "lag_cap"
                     : config.dc_lambda ? "dc_lambda"
                     : config.momentum  ? "momentum"
                     : config.weight    ? "weight"
                                        : nullptr;
  if (part != nullptr)
    throw Error(ExitCode::usage, str("strategy.", part, " beside mode sync"),
                "synchronous gradients have no lag that it could treat",
                "leave it out, or take mode async");
}

}  // namespace

ServerPolicy policy_of(PsConfig const& config, int workers) {
  auto policy = preset(config.mode, workers);
  if (config.mode == PsMode::sync) {
    refuse_parts_of_sync(config);
    return policy;
  }
  if (config.staleness) {
    policy.gate = Gate::ssp;
    policy.staleness = *config.staleness;
  }
  policy.lag_cap = config.lag_cap.value_or(policy.lag_cap);
  policy.correction = config.dc_lambda.value_or(policy.correction);
  policy.momentum = config.momentum.value_or(policy.momentum);
  policy.weight = config.weight.value_or(policy.weight);
  return policy;
}

}  // namespace stratagem
