#include "train/checkpoint/facts.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <type_traits>

#include <ATen/ATen.h>
#include <ATen/Version.h>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/ps/ps_config.hpp"
#include "train/instruction_set.hpp"

namespace stratagem {
namespace {

/// Without these two alike there is nothing to go on with.
constexpr std::array<std::string_view, 4> always{"model.name", "model.num_classes", "data.dataset",
                                                 "dataset"};

/// Keys of these sections change numbers, but for the exceptions.
constexpr std::array<std::string_view, 4> sections{"data.", "model.", "precision.", "optimizer."};
constexpr std::array<std::string_view, 6> without_effect{
    "data.root",     "data.global_batch", "data.batch_per_worker",
    "model.weights", "model.head",        "model.recompute"};

/// What is the machine's, and not what the run was told to do.
constexpr std::array<std::string_view, 5> surroundings{"threads", "device", "LibTorch",
                                                       "instruction set", "kernels"};

template <class Names>
bool among(Names const& names, std::string const& name) {
  return std::ranges::find(names, name) != names.end();
}

char const* name_of(ServerPolicy::Gate gate) {
  static constexpr std::array names{"none", "bsp", "ssp", "softsync", "backup"};
  return names.at(static_cast<std::size_t>(gate));
}
char const* name_of(ServerPolicy::Momentum momentum) {
  static constexpr std::array names{"shared", "per_worker", "look_ahead"};
  return names.at(static_cast<std::size_t>(momentum));
}
char const* name_of(ServerPolicy::Weight weight) {
  static constexpr std::array names{"one", "inverse_lag", "inverse_gap"};
  return names.at(static_cast<std::size_t>(weight));
}
char const* name_of(ServerPolicy::OverCap over_cap) {
  return over_cap == ServerPolicy::OverCap::drop ? "drop" : "attenuate";
}
char const* name_of(ServerPolicy::Pulls pulls) {
  return pulls == ServerPolicy::Pulls::consistent ? "consistent" : "chunkwise";
}

/// In which order gradients are added and applied.
std::string order_of_sums(StrategyConfig const& config, StrategyPlan const& plan) {
  auto const passes = str(plan.micro_batches, " micro-batches");
  auto const order = [&](Accumulate accumulate) {
    bool const sharded = accumulate == Accumulate::sharded && plan.micro_batches > 1;
    return passes + (sharded ? ", summed over workers first" : "");
  };
  if (auto const* serial = std::get_if<SerialConfig>(&config)) return order(serial->accumulate);
  if (auto const* fsdp = std::get_if<FsdpConfig>(&config))
    return order(fsdp->accumulate) +
           (fsdp->reduce == ReduceType::compute ? ", in the compute type" : "");
  return plan.synchronous ? passes : "asynchronous, " + passes;
}

/// How a parameter server treats gradients, where that is not what every synchronous training does;
/// named as the keys are that choose it, whether they or a mode have chosen it.
void add_policy(PsConfig const& config, StrategyPlan const& plan, Facts& facts) {
  auto const policy = policy_of(config, plan.workers);
  ServerPolicy const synchronous{.gate = ServerPolicy::Gate::bsp};
  auto const add = [&](char const* key, auto part) {
    if (policy.*part == synchronous.*part) return;
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(policy.*part)>>)
      facts[str("strategy.", key)] = name_of(policy.*part);
    else
      facts[str("strategy.", key)] = shortest(static_cast<double>(policy.*part));
  };
  add("gate", &ServerPolicy::gate);
  add("staleness", &ServerPolicy::staleness);
  if (policy.gate == ServerPolicy::Gate::backup)
    facts["strategy.backup"] = std::to_string(plan.workers - policy.count);
  else
    add("count", &ServerPolicy::count);
  add("lag_cap", &ServerPolicy::lag_cap);
  add("over_cap", &ServerPolicy::over_cap);
  add("weight", &ServerPolicy::weight);
  add("dc_lambda", &ServerPolicy::correction);
  add("momentum", &ServerPolicy::momentum);
  add("delay", &ServerPolicy::delay);
  add("pushes", &ServerPolicy::pushes);
  add("pull_every", &ServerPolicy::pull_every);
  add("pull_at_lag", &ServerPolicy::pull_at_lag);
  add("pulls", &ServerPolicy::pulls);
  add("warm_start", &ServerPolicy::warm_start);
  if (!policy.asynchronous()) return;
  // What has versions of its own: each server, and with pulls chunkwise each chunk.
  facts["strategy.servers"] = std::to_string(config.servers);
  if (policy.pulls == ServerPolicy::Pulls::chunkwise)
    facts["strategy.chunk_mb"] = shortest(config.chunk_mb);
}

}  // namespace

Facts training_facts(std::map<std::string, std::string> const& values, Setup const& setup) {
  auto const& plan = setup.plan;
  Facts facts;
  for (auto const& [path, value] : values) {
    bool const counts = std::ranges::any_of(
        sections, [&path = path](auto section) { return path.starts_with(section); });
    bool const of_run = path == "run.seed" || path == "run.deterministic";
    if ((counts && !among(without_effect, path)) || of_run) facts[path] = value;
  }
  facts["dataset"] = setup.dataset.fingerprint;
  facts["global batch"] = std::to_string(plan.global_batch);
  facts["memory format"] =
      setup.model.memory_format == MemoryFormat::channels_last ? "channels_last" : "contiguous";
  facts["workers"] = std::to_string(plan.strategy.workers);
  facts["order of sums"] = order_of_sums(plan.config.strategy, plan.strategy);
  if (auto const* ps = std::get_if<PsConfig>(&plan.config.strategy))
    add_policy(*ps, plan.strategy, facts);
  facts["threads"] = std::to_string(setup.threads);
  facts["device"] = gpu::device_name(setup.process.device);
  facts["LibTorch"] = build_info().libtorch;
  facts["instruction set"] = at::get_cpu_capability();
  if (auto const settings = kernel_settings(); !settings.empty()) facts["kernels"] = settings;
  if (plan.config.optimizer.schedule == ScheduleKind::cosine)
    facts["steps of the schedule"] = std::to_string(plan.total_steps);
  return facts;
}

Facts without_surroundings(Facts facts) {
  std::erase_if(facts, [](auto const& fact) { return among(surroundings, fact.first); });
  return facts;
}

std::string require_alike(Facts const& before, Facts const& now, Likeness likeness,
                          std::string const& what) {
  std::set<std::string> names;
  for (auto const& [name, _] : before) names.insert(name);
  for (auto const& [name, _] : now) names.insert(name);
  auto const value = [](Facts const& of, std::string const& name) {
    auto const found = of.find(name);
    if (found != of.end()) return found->second;
    return std::string(name.starts_with("strategy.") ? "not set" : "not known");
  };
  std::vector<std::string> forbidden, changed;
  for (auto const& name : names) {
    auto const was = value(before, name), is = value(now, name);
    if (was == is) continue;
    bool const ends = likeness == Likeness::exact || among(always, name);
    (ends ? forbidden : changed).push_back(str(name, " was ", was, " and is ", is));
  }
  if (!forbidden.empty())
    throw Error(
        ExitCode::checkpoint, str("the run cannot go on from ", what), join(forbidden, "; "),
        "change it back; --resume=compatible goes on with all but another model or dataset");
  return join(changed, "; ");
}

}  // namespace stratagem
