#include "train/checkpoint/resume.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <ATen/ATen.h>
#include <ATen/Version.h>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "model/weights.hpp"

namespace stratagem {
namespace {

using Facts = std::map<std::string, std::string>;
using Kind = StateName::Kind;

/// Without these two alike there is nothing to go on with.
constexpr std::array<std::string_view, 4> always{"model.name", "model.num_classes", "data.dataset",
                                                 "dataset"};

/// Keys of these sections change numbers, but for the exceptions.
constexpr std::array<std::string_view, 4> sections{"data.", "model.", "precision.", "optimizer."};
constexpr std::array<std::string_view, 6> without_effect{
    "data.root",     "data.global_batch", "data.batch_per_worker",
    "model.weights", "model.head",        "model.recompute"};

template <class Names>
bool among(Names const& names, std::string const& name) {
  return std::ranges::find(names, name) != names.end();
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
  return plan.deals_shares ? "asynchronous" : passes;
}

void check_tensors(Checkpoint const& checkpoint, Model const& model) {
  TensorMap tensors;
  for (auto const& file : checkpoint.record().files)
    for (auto const& [text, tensor] : file.tensors) {
      auto const name = StateName::parse(text);
      if (name.kind == Kind::momentum || (name.kind == Kind::buffers && name.worker != 0)) continue;
      bool const counter = tensor.type == at::toString(at::kLong);
      tensors.emplace(name.tensor, at::zeros({}, counter ? at::kLong : at::kFloat)
                                       .expand(tensor.shape));  // one element, of any shape
    }
  try {
    static_cast<void>(
        match_weights(model, std::move(tensors), HeadWeights::strict, checkpoint.folder()));
  } catch (Error const& mismatch) {
    throw Error(ExitCode::checkpoint, mismatch.what());
  }
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
  facts["threads"] = std::to_string(setup.threads);
  facts["device"] = gpu::device_name(setup.process.device);
  facts["LibTorch"] = build_info().libtorch;
  facts["instruction set"] = at::get_cpu_capability();
  if (plan.config.optimizer.schedule == ScheduleKind::cosine)
    facts["steps of the schedule"] = std::to_string(plan.total_steps);
  return facts;
}

void check_resumable(Checkpoint const& checkpoint, Facts const& facts, Model const& model,
                     Likeness likeness, Log& log) {
  auto const& saved = checkpoint.record().facts;
  std::set<std::string> names;
  for (auto const& [name, _] : saved) names.insert(name);
  for (auto const& [name, _] : facts) names.insert(name);
  auto const value = [](Facts const& of, std::string const& name) {
    auto const found = of.find(name);
    return found == of.end() ? std::string("not known") : found->second;
  };
  std::vector<std::string> forbidden, changed;
  for (auto const& name : names) {
    auto const before = value(saved, name), now = value(facts, name);
    if (before == now) continue;
    bool const ends = likeness == Likeness::exact || among(always, name);
    (ends ? forbidden : changed).push_back(str(name, " was ", before, " and is ", now));
  }
  if (!forbidden.empty())
    throw Error(
        ExitCode::checkpoint, str("the run cannot go on from ", checkpoint.folder().string()),
        join(forbidden, "; "),
        "change it back; --resume=compatible goes on with all but another model or dataset");
  check_tensors(checkpoint, model);
  if (!changed.empty())
    log.warning("goes on, but its numbers are others than without the stop: " +
                join(changed, "; "));
}

void restore(Checkpoint const& checkpoint, int workers, Strategy& strategy) {
  bool const same_workers = checkpoint.record().workers == workers;
  std::map<std::string, std::map<int, at::Tensor>> of_workers;
  checkpoint.read([&](StateName const& name, at::Tensor const& tensor) {
    TensorMap const one{{name.tensor, tensor}};
    if (name.kind == Kind::parameters) strategy.load(one);
    if (name.kind == Kind::momentum) strategy.load_momentum(one);
    if (name.kind == Kind::buffers && same_workers) strategy.load_buffers(name.worker, one);
    if (name.kind == Kind::buffers && !same_workers) of_workers[name.tensor][name.worker] = tensor;
  });
  strategy.load(average(of_workers));
  strategy.load_counters(checkpoint.record().counters);
}

}  // namespace stratagem
