#include "conformance/one_process.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "comm/serial/serial_world.hpp"
#include "strategy/ps/offline/replay.hpp"

namespace stratagem::test {
namespace {

/// A model and what else strategies are made of.
struct OneProcess {
  explicit OneProcess(Training const& training)
      : model(test_model(training.model)), parts(parts_of(training, model, alone, recorder)) {}

  Model model;
  SerialWorld alone{{}};
  trace::Recorder recorder{{}, 0};
  StrategyParts parts;
};

}  // namespace

NamedTensors replay(Training const& training, int ranks, std::filesystem::path const& folder) {
  OneProcess const process(training);
  auto const& ps = std::get<PsConfig>(training.strategy);
  auto const plan = plan_ps(ps, make_layout(process.model), ranks, 4);
  std::vector<std::vector<RecordedPush>> pushes;
  for (int const rank : plan.placement.server_ranks())
    pushes.push_back(recorded_pushes(trace::read_rank_trace(trace_of(folder, rank))));
  auto const parts = plan.workers() * plan.policy.pushes;
  PsReplay replay(plan, process.parts, std::move(pushes));
  return replay.run([&](std::int64_t step, std::int64_t first_slot) {
    return training_batch(training, step, first_slot, parts);
  });
}

Simulated simulate(Training const& training, int workers, ClusterModel const& cluster) {
  OneProcess const process(training);
  auto const batch = [&](Share const& share) {
    auto const slot = share.slice.of_batch(training.global_batch).begin;
    return training_batch(training, share.step, slot, share.slice.ranks);
  };
  auto const& ps = std::get<PsConfig>(training.strategy);
  PsSimulation simulation(
      plan_ps(ps, make_layout(process.model), workers + ps.servers, 4), cluster, process.parts,
      {.batch = batch, .lr = [&](std::int64_t) { return training.optimizer.lr; }});
  simulation.load_counters(training.counters);
  for (std::int64_t step = 0; step < training.steps; step += training.round())
    static_cast<void>(
        simulation.run_round(step, std::min(step + training.round(), training.steps)));
  return {simulation.parameters(), simulation.counts()};
}

std::vector<std::string> differences(NamedTensors const& a, NamedTensors const& b) {
  expects(a.size() == b.size(), "tensors of the same model");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || !at::equal(a[i].second, b[i].second))
      names.push_back(a[i].first);
  return names;
}

}  // namespace stratagem::test
