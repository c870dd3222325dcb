#include "predict/time/step_costs.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/bench.hpp"

namespace stratagem {
namespace {

std::string measured_kinds(Calibration const& calibration) {
  std::vector<std::string> kinds;
  for (auto const& pass : calibration.passes) {
    auto kind = describe(pass.kind);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(std::move(kind));
  }
  return kinds.empty() ? "it has no passes" : "it has " + join(kinds, "; ");
}

/// Passes of `kind`, of as many ranks at once as were measured up to `together`.
PassTimes const& passes_of(Calibration const& calibration, PassKind const& kind, int together) {
  PassTimes const* best = nullptr;
  for (auto const& pass : calibration.passes) {
    if (!calibration.stands_for(pass.kind, kind)) continue;
    bool const nearer = best == nullptr || (pass.ranks_on_node <= together
                                                ? best->ranks_on_node > together ||
                                                      pass.ranks_on_node > best->ranks_on_node
                                                : pass.ranks_on_node < best->ranks_on_node);
    if (nearer) best = &pass;
  }
  if (best == nullptr)
    throw Error(ExitCode::usage, "the calibration has no passes of " + describe(kind),
                measured_kinds(calibration),
                calibration.published.empty()
                    ? "add them with `stratagem calibrate CONFIG -o FILE`, on that machine"
                    : "take a model, size and precision that it has, or measure with `stratagem "
                      "calibrate CONFIG`");
  return *best;
}

/// Among `ranks`, from the nearest number that was measured; of one rank alone, its own copies.
/// With a link it may be unknown: then it takes the link's time alone.
Curve operation_among(Calibration const& calibration, BenchOperation operation, int ranks) {
  auto const name = bench_operation_names[static_cast<std::size_t>(operation)];
  OperationTimes const* best = nullptr;
  for (auto const& measured : calibration.operations) {
    if (measured.operation != name || (measured.ranks == 1) != (ranks == 1)) continue;
    if (best == nullptr || std::abs(measured.ranks - ranks) < std::abs(best->ranks - ranks))
      best = &measured;
  }
  if (best == nullptr && (ranks == 1 || calibration.link)) return {};
  if (best == nullptr)
    throw Error(ExitCode::usage, str("the calibration has no ", name, " among ranks"),
                "it was measured with one rank only",
                "add to it with `mpirun -n N stratagem calibrate CONFIG -o FILE`");
  if (ranks == 1) return best->time;
  return best->time.scaled(bus_factor(operation, ranks) / bus_factor(operation, best->ranks));
}

Curve push_of(Calibration const& calibration, std::string const& work) {
  auto const found = std::ranges::find(calibration.servers, work, &ServerTimes::work);
  if (found == calibration.servers.end())
    throw Error(ExitCode::usage, "the calibration has no times of servers", {},
                "add to it with `stratagem calibrate CONFIG -o FILE`, started with one rank");
  return found->push;
}

bool on_gpu(RunPlan const& plan, Calibration const& calibration) {
  auto const wanted = plan.config.run.device;
  if (wanted == DeviceChoice::automatic || (wanted == DeviceChoice::cuda) == calibration.on_gpu)
    return calibration.on_gpu;
  throw Error(ExitCode::usage, str("run.device is ", wanted == DeviceChoice::cuda ? "cuda" : "cpu"),
              "the calibration is of " + calibration.device,
              "take a calibration of the device that will be used");
}

/// Those that a step of the plan consists of.
void set_operations(StepCosts& costs, RunPlan const& plan, Calibration const& calibration) {
  auto const among = [&](BenchOperation operation) {
    return operation_among(calibration, operation,
                           plan.strategy.traffic.ranks_of(operation, plan.ranks));
  };
  auto const needs = [&](BenchOperation operation) {
    return std::ranges::count(plan.strategy.traffic.operations, operation) > 0;
  };
  if (needs(BenchOperation::all_gather)) costs.all_gather = among(BenchOperation::all_gather);
  if (needs(BenchOperation::reduce_scatter))
    costs.reduce_scatter = among(BenchOperation::reduce_scatter);
  if (needs(BenchOperation::all_reduce)) costs.all_reduce = among(BenchOperation::all_reduce);
  if (!needs(BenchOperation::send_receive)) return;
  costs.exchange = among(BenchOperation::send_receive);
  // Of two ranks that exchange messages each sends one and receives one.
  costs.message = operation_among(calibration, BenchOperation::send_receive, 2).scaled(0.5);
}

}  // namespace

StepCosts step_costs(RunPlan const& plan, Model const& model, Calibration const& calibration) {
  StepCosts costs{.ranks_on_node = calibration.ranks_on_node(plan.ranks)};
  costs.threads = plan.config.run.threads > 0
                      ? plan.config.run.threads
                      : std::max(calibration.cores / costs.ranks_on_node, 1);
  if (!on_gpu(plan, calibration)) costs.cores = calibration.cores;
  auto const together = std::max(plan.strategy.awake_ranks() * costs.ranks_on_node / plan.ranks, 1);
  auto const kind = pass_kind(plan.config, model, costs.threads);
  auto const& passes = passes_of(calibration, kind, together);
  auto const samples = static_cast<double>(plan.samples_per_pass);
  costs.forward_s = passes.forward.at(samples);
  costs.backward_s = passes.backward.at(samples);
  costs.optimizer_s = passes.optimizer_s;
  costs.codecs = calibration.codecs(together);
  set_operations(costs, plan, calibration);
  if (calibration.link && plan.ranks > 1)
    costs = over_link(costs, *calibration.link, plan.ranks, plan.strategy.traffic);
  if (!plan.strategy.servers.work.empty())
    costs.push = push_of(calibration, plan.strategy.servers.work);
  return costs;
}

}  // namespace stratagem
