#include "train/checkpoint/facts.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/Version.h>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "train/instruction_set.hpp"

namespace stratagem {
namespace {

/// If one of these differs, nothing can be resumed.
constexpr std::array<std::string_view, 7> always{
    "model.name",  "model.num_classes", "graph",  "data.dataset",
    "data.subset", "data.holdout",      "dataset"};

/// Keys of these sections change numbers, but for the exceptions.
constexpr std::array<std::string_view, 4> sections{"data.", "model.", "precision.", "optimizer."};
constexpr std::array<std::string_view, 10> without_effect{"data.root",
                                                          "data.path",
                                                          "data.decode_threads",
                                                          "data.global_batch",
                                                          "data.batch_per_worker",
                                                          "model.file",
                                                          "model.weights",
                                                          "model.frozen",
                                                          "model.head",
                                                          "model.recompute"};

constexpr char schedule_length[] = "steps of the schedule";
constexpr char initial_weights[] = "initial weights";

/// What is the machine's, and not what the run was told to do.
constexpr std::array<std::string_view, 5> surroundings{"threads", "device", "LibTorch",
                                                       "instruction set", "kernels"};

template <class Names>
bool among(Names const& names, std::string const& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Keys that are in section advanced were in section strategy once; others were not there.
Facts with_present_names(Facts before, Facts const& now) {
  constexpr std::string_view old = "strategy.";
  for (auto const& [name, _] : Facts(before)) {
    if (!name.starts_with(old) || now.contains(name)) continue;
    auto const moved = "advanced." + name.substr(old.size());
    if (!now.contains(moved)) continue;
    auto entry = before.extract(name);
    entry.key() = moved;
    before.insert(std::move(entry));
  }
  if (now.contains("optimizer.decay")) before.try_emplace("optimizer.decay", "all");
  if (now.contains("model.fused")) before.try_emplace("model.fused", "auto");
  if (now.contains("data.holdout")) before.try_emplace("data.holdout", "0");
  if (!now.contains(schedule_length)) before.erase(schedule_length);
  for (char const* const name : {schedule_length, initial_weights})  // were not always known
    if (auto const known = now.find(name); known != now.end()) before.insert(*known);
  return before;
}

/// The learning rate of a step depends on how many there are.
bool depends_on_length(OptimizerConfig const& optimizer) {
  auto const kind = optimizer.schedule;
  bool const decays = kind == ScheduleKind::cosine || kind == ScheduleKind::linear;
  return kind == ScheduleKind::wsd || (decays && optimizer.decay_steps == 0);
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
  if (!setup.model.graph.empty()) facts["graph"] = setup.model.graph;
  facts["dataset"] = setup.dataset.fingerprint;
  facts["global batch"] = std::to_string(plan.global_batch);
  facts["memory format"] =
      setup.model.memory_format == MemoryFormat::channels_last ? "channels_last" : "contiguous";
  facts["workers"] = std::to_string(plan.strategy.shares.workers);
  facts["order of sums"] = plan.strategy.numbers.order_of_sums;
  facts.insert(plan.strategy.numbers.choices.begin(), plan.strategy.numbers.choices.end());
  facts["threads"] = std::to_string(setup.threads);
  facts["device"] = gpu::device_name(setup.process.device);
  facts["LibTorch"] = build_info().libtorch;
  facts["instruction set"] = at::get_cpu_capability();
  if (auto const settings = kernel_settings(); !settings.empty()) facts["kernels"] = settings;
  if (depends_on_length(plan.config.optimizer))
    facts[schedule_length] = std::to_string(plan.total_steps);
  facts[initial_weights] = setup.weights_digest;
  return facts;
}

Facts without_surroundings(Facts facts) {
  std::erase_if(facts, [](auto const& fact) { return among(surroundings, fact.first); });
  return facts;
}

Differences compare(Facts before, Facts const& now, ResumeMode resume_mode) {
  before = with_present_names(std::move(before), now);
  std::set<std::string> names;
  for (auto const& [name, _] : before) names.insert(name);
  for (auto const& [name, _] : now) names.insert(name);
  auto const value = [](Facts const& of, std::string const& name) {
    auto const found = of.find(name);
    if (found != of.end()) return found->second;
    bool const is_choice = name.starts_with("strategy.") || name.starts_with("advanced.") ||
                           name.starts_with("optimizer.");
    return std::string(is_choice ? "not set" : "not known");
  };
  Differences found;
  for (auto const& name : names) {
    auto const was = value(before, name), is = value(now, name);
    if (was == is) continue;
    bool const ends = resume_mode == ResumeMode::exact || among(always, name);
    (ends ? found.forbidden : found.allowed).push_back(str(name, " was ", was, " and is ", is));
  }
  return found;
}

void refuse_to_resume(std::string const& what, std::vector<std::string> const& forbidden) {
  throw Error(
      ExitCode::checkpoint, str("cannot resume from ", what), join(forbidden, "; "),
      "change it back; --resume=compatible allows everything except another model or dataset");
}

std::string require_alike(Facts before, Facts const& now, ResumeMode resume_mode,
                          std::string const& what) {
  auto const found = compare(std::move(before), now, resume_mode);
  if (!found.forbidden.empty()) refuse_to_resume(what, found.forbidden);
  return join(found.allowed, "; ");
}

}  // namespace stratagem
