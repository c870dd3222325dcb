#include "strategy/ps/ps_config.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using Gate = ServerPolicy::Gate;
using Momentum = ServerPolicy::Momentum;
using Pulls = ServerPolicy::Pulls;
using Weight = ServerPolicy::Weight;

ServerPolicy preset(PsMode mode, int workers) {
  switch (mode) {
    case PsMode::sync:
      return {.gate = Gate::bsp};
    case PsMode::async:
      return {};
    case PsMode::ssp:
      return {.gate = Gate::ssp, .staleness = 2};
    case PsMode::modified:
      return {.gate = Gate::ssp, .staleness = 2, .weight = Weight::inverse_lag, .pushes = 2};
    case PsMode::lag_cap:
      return {.lag_cap = workers};
    case PsMode::dana:
      return {.momentum = Momentum::look_ahead};
    case PsMode::dc:
      return {.correction = 0.04};
    case PsMode::dc_adaptive:
      return {.correction = 2, .correction_decay = 0.95};
    case PsMode::gap_aware:
      return {.weight = Weight::inverse_gap};
    case PsMode::delayed_sync:
      return {.gate = Gate::bsp, .momentum = Momentum::look_ahead, .delay = 1};
    case PsMode::softsync:
      return {.gate = Gate::softsync, .count = workers};
    case PsMode::backup:
      return {.gate = Gate::backup, .count = workers - 1};
  }
  return {};
}

/// The gate that is given, or the one whose part is, or the mode's.
Gate choose_gate(PsConfig const& config, Gate of_mode) {
  if (config.gate) return *config.gate;
  if (of_mode != Gate::none) return of_mode;
  if (config.staleness) return Gate::ssp;
  if (config.count) return Gate::softsync;
  if (config.backup) return Gate::backup;
  return Gate::none;
}

/// The mode's parts, but for those that are given.
ServerPolicy combined(PsConfig const& config, int workers) {
  auto policy = preset(config.mode, workers);
  policy.gate = choose_gate(config, policy.gate);
  policy.staleness = config.staleness.value_or(static_cast<int>(policy.staleness));
  policy.count = policy.gate == Gate::softsync ? config.count.value_or(workers)
                 : policy.gate == Gate::backup ? workers - config.backup.value_or(1)
                                               : 1;
  policy.lag_cap = config.lag_cap.value_or(static_cast<int>(policy.lag_cap));
  policy.over_cap = config.over_cap.value_or(policy.over_cap);
  policy.weight = config.weight.value_or(policy.weight);
  policy.correction = config.dc_lambda.value_or(policy.correction);
  if (config.dc_decay) policy.correction_decay = config.dc_decay;
  if (policy.correction == 0) policy.correction_decay.reset();
  policy.momentum = config.momentum.value_or(policy.momentum);
  policy.delay = config.delay.value_or(policy.delay);
  policy.pushes = config.pushes.value_or(policy.pushes);
  policy.pull_every = config.pull_every.value_or(policy.pull_every);
  policy.pull_at_lag = config.pull_at_lag;
  policy.cached_reads = config.cached_reads;
  policy.pulls = config.pulls;
  policy.warm_start = config.warm_start;
  return policy;
}

std::string gate_name(Gate gate) {
  static constexpr std::array names{"none", "bsp", "ssp", "softsync", "backup"};
  return str("gate ", names[static_cast<std::size_t>(gate)]);
}

/// Refuses parts that contradict another part.
class Contradictions {
 public:
  explicit Contradictions(std::string other) : other_(std::move(other)) {}

  void refuse(bool is_there, char const* part, char const* why, char const* cure) const {
    if (is_there)
      throw Error(ExitCode::usage, str(path_of_part(part), " together with ", other_), why, cure);
  }

 private:
  std::string other_;
};

constexpr char const* leave_out = "leave it out";

/// The part by which a policy does without some pulls.
char const* rare_pulls(ServerPolicy const& policy) {
  if (policy.cached_reads) return "cached_reads";
  return policy.pull_at_lag > 0 ? "pull_at_lag" : "pull_every";
}

void check_gate(PsConfig const& config, ServerPolicy const& policy) {
  Contradictions const gate(gate_name(policy.gate));
  gate.refuse(!policy.asynchronous() && preset(config.mode, 2).asynchronous() &&
                  config.mode != PsMode::async,
              "mode", "it treats gradients that come one by one",
              "take mode sync or delayed_sync, or another gate");
  gate.refuse(config.staleness && policy.gate != Gate::ssp, "staleness",
              "only ssp bounds how far a worker is ahead", "take gate ssp, or leave it out");
  gate.refuse(config.count && policy.gate != Gate::softsync, "count",
              "only softsync counts the gradients of an update",
              "take gate softsync, or leave it out");
  gate.refuse(config.backup && policy.gate != Gate::backup, "backup",
              "only backup continues without some workers", "take gate backup, or leave it out");
  gate.refuse(policy.delay > 0 && policy.asynchronous(), "delay",
              "a worker that never waits gains nothing from a delay", "take gate bsp, or delay 0");
  gate.refuse(policy.cached_reads && policy.gate != Gate::ssp, "cached_reads",
              "only ssp bounds how old cached parameters may be", "take mode ssp, or leave it out");
  gate.refuse(!policy.always_pulls() && !policy.cached_reads &&
                  (policy.gate == Gate::ssp || policy.gate == Gate::backup),
              rare_pulls(policy), "a worker that does not pull is not held back",
              "leave it out, or take another gate");
  gate.refuse(policy.pulls == Pulls::chunkwise && policy.gate == Gate::backup, "pulls",
              "chunks would drop different workers' gradients", "take pulls consistent");
  gate.refuse(policy.collects() && policy.momentum != Momentum::shared, "momentum",
              "an update has gradients of several workers", "take momentum shared");
}

/// A worker applies its own updates to what it has cached.
void check_cached_reads(PsConfig const& config, ServerPolicy const& policy) {
  Contradictions const cached("cached_reads");
  cached.refuse(config.pull_every.has_value() || policy.pull_at_lag > 0,
                config.pull_every ? "pull_every" : "pull_at_lag",
                "the age of what is cached decides when workers pull", leave_out);
  cached.refuse(policy.pulls == Pulls::chunkwise, "pulls",
                "each chunk would have an age of its own", "take pulls consistent");
  char const* const unknown = "a worker does not know what servers make of its gradient";
  cached.refuse(policy.weight != Weight::one, "weight", unknown, "take weight one");
  cached.refuse(policy.lag_cap > 0, "lag_cap", unknown, leave_out);
  cached.refuse(policy.correction > 0, "dc_lambda", unknown, leave_out);
}

void check_warm_start(ServerPolicy const& policy) {
  Contradictions const start("warm_start");
  start.refuse(!policy.asynchronous(), "gate", "all workers are synchronous already", leave_out);
  start.refuse(policy.momentum != Momentum::shared, "momentum",
               "an update of the warm start has gradients of all workers", "take momentum shared");
  start.refuse(!policy.always_pulls(), rare_pulls(policy),
               "in a warm start all workers compute with the newest version", leave_out);
}

/// Parts that treat a lag, where there is none.
void refuse_treatment(PsConfig const& config, ServerPolicy const& policy, char const* why) {
  Contradictions const gate(gate_name(policy.gate));
  gate.refuse(config.lag_cap.has_value(), "lag_cap", why, leave_out);
  gate.refuse(config.over_cap.has_value(), "over_cap", why, leave_out);
  gate.refuse(config.weight.has_value(), "weight", why, leave_out);
  gate.refuse(config.dc_lambda.has_value(), "dc_lambda", why, leave_out);
  gate.refuse(config.dc_decay.has_value(), "dc_decay", why, leave_out);
}

void check_sync(PsConfig const& config, ServerPolicy const& policy) {
  refuse_treatment(config, policy, "synchronous gradients have no lag that it could treat");
  Contradictions const sync(policy.delay > 0 ? "gate bsp with a delay" : gate_name(policy.gate));
  sync.refuse(config.pushes.has_value(), "pushes", "all workers push together, once per step",
              leave_out);
  sync.refuse(config.pull_every || policy.pull_at_lag > 0, rare_pulls(policy),
              "every update goes to all workers", leave_out);
  sync.refuse(policy.pulls == Pulls::chunkwise, "pulls",
              "chunks go out as soon as they are updated already, and make one version", leave_out);
  sync.refuse(config.momentum && policy.momentum == Momentum::per_worker, "momentum",
              "an update has gradients of all workers", "take shared or look_ahead");
  sync.refuse(config.momentum && policy.delay == 0, "momentum",
              "there is one, and nothing to look ahead over",
              "leave it out, or take optimizer.nesterov");
}

void check_counts(PsConfig const& config, ServerPolicy const& policy, int workers) {
  if (policy.gate != Gate::backup) return;
  auto const spare = workers - policy.count;
  if (policy.count < 1 || spare < 1)
    throw Error(ExitCode::usage, str("strategy.backup: ", spare, " of ", workers, " workers"),
                "an update needs a gradient, and a worker that it does not wait for",
                workers > 1 ? str("take 1 to ", workers - 1) : "start more ranks");
  if (config.servers > 1)
    throw Error(ExitCode::usage,
                str("strategy.servers: ", config.servers, " together with gate backup"),
                "they would drop different workers' gradients", "take strategy.servers: 1");
}

/// Parts of a part that is not there.
void check_owners(PsConfig const& config, ServerPolicy const& policy) {
  if (config.over_cap && policy.lag_cap == 0)
    throw Error(ExitCode::usage, "advanced.over_cap without strategy.lag_cap",
                "there is no cap to be over", "give one, or leave it out");
  if (config.dc_decay && policy.correction == 0)
    throw Error(ExitCode::usage, "advanced.dc_decay without strategy.dc_lambda",
                "there is no compensation that it could adapt",
                "take strategy.mode: dc_adaptive, or leave it out");
}

}  // namespace

std::string path_of_part(std::string_view name) {
  static constexpr std::array<std::string_view, 11> advanced{
      "gate",  "over_cap",   "weight",      "dc_decay",     "momentum",  "pushes",
      "pulls", "pull_every", "pull_at_lag", "cached_reads", "warm_start"};
  bool const among = std::ranges::find(advanced, name) != advanced.end();
  return str(among ? "advanced." : "strategy.", name);
}

ServerPolicy policy_of(PsConfig const& config, int workers) {
  auto const policy = combined(config, workers);
  Contradictions("pull_at_lag")
      .refuse(policy.pull_at_lag > 0 && config.pull_every, "pull_every",
              "the lag decides when workers pull", "leave one of them out");
  if (policy.warm_start > 0) check_warm_start(policy);
  check_gate(config, policy);
  if (policy.cached_reads) check_cached_reads(config, policy);
  if (!policy.asynchronous()) check_sync(config, policy);
  if (policy.gate == Gate::backup)
    refuse_treatment(config, policy, "gradients with a lag are dropped already");
  check_owners(config, policy);
  check_counts(config, policy, workers);
  return policy;
}

}  // namespace stratagem
