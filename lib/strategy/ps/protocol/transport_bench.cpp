#include "strategy/ps/protocol/transport_bench.hpp"

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "strategy/ps/protocol/transport.hpp"
#include "strategy/ps/ps_plan.hpp"

namespace stratagem {
namespace {

OptimizerConfig const optimizer{.rule = SgdConfig{.momentum = 0.9}};
constexpr double lr = 0.01;

/// A vector, and who does what with it.
struct Bench {
  Bench(World& of, std::int64_t bytes, double chunk_mb)
      : world(of),
        communicator(of.all()),
        layout({{{.name = "vector", .shape = {bytes / 4}, .initialiser = {}}}}, false),
        ps(plan_ps({.chunk_mb = chunk_mb}, layout, communicator.size(), sizeof(float))) {}

  StrategyParts parts() {
    return {.model = model,
            .world = world,
            .recorder = recorder,
            .device = {},
            .optimizer = optimizer,
            .precision = {},
            .recompute = {}};
  }

  World& world;
  Communicator& communicator;
  ParameterLayout layout;
  PsPlan ps;
  Model model;
  trace::Recorder recorder{{}, 0};
};

/// Mean over `rounds`, of the slowest rank; the first half of twice as many warm up.
template <class Round>
double time_of(Communicator& communicator, int rounds, Round round) {
  for (int i = 0; i < rounds; ++i) round();
  communicator.barrier().wait_on_host();
  auto const begin = monotonic_ns();
  for (int i = 0; i < rounds; ++i) round();
  auto const seconds = communicator.allocate(communicator.size(), at::kDouble);
  seconds[communicator.rank()] = static_cast<double>(monotonic_ns() - begin) * 1e-9 / rounds;
  communicator.all_reduce(seconds).wait_on_host();
  return seconds.max().item<double>();
}

void serve(PsPlan const& plan, PsTransport& transport, ParameterStore& store) {
  std::vector<std::vector<Work>> arriving(static_cast<std::size_t>(plan.workers()));
  for (int worker = 0; worker < plan.workers(); ++worker)
    for (auto const& chunk : plan.servers.chunks)
      arriving[static_cast<std::size_t>(worker)].push_back(transport.receive(worker, chunk));
  std::vector<Work> leaving;
  store.begin_update();
  for (auto const& chunk : plan.servers.chunks) {
    for (auto& of_worker : arriving)
      of_worker[static_cast<std::size_t>(chunk.index)].wait_on_host();
    store.add_up(shard_range(chunk));
    store.apply_sum(shard_range(chunk), lr, 1.0 / plan.workers());
    for (int worker = 0; worker < plan.workers(); ++worker)
      leaving.push_back(transport.send(worker, chunk));
  }
  for (auto& work : leaving) work.wait_on_host();
}

void push_and_pull(ServerPlan const& plan, PsTransport& transport, at::Tensor const& gradient,
                   at::Tensor const& parameters) {
  std::vector<Work> works;
  for (auto const& chunk : plan.chunks) {
    works.push_back(transport.push(in_flat(gradient, chunk), chunk));
    works.push_back(transport.pull(in_flat(parameters, chunk), chunk));
  }
  for (auto& work : works) work.wait_on_host();
}

double measure(Bench& bench, PsConfig::Transport kind, int rounds) {
  bench.ps.config.transport = kind;
  auto const transport = make_transport(bench.ps, bench.parts());
  bool const serves = bench.ps.placement.serves(bench.communicator.rank());
  if (serves) {
    ParameterStore store(bench.ps.policy, optimizer, transport->memory());
    return time_of(bench.communicator, rounds, [&] { serve(bench.ps, *transport, store); });
  }
  auto const allocate = [&] {
    return bench.communicator.allocate(bench.layout.size(), at::kFloat);
  };
  auto const gradient = allocate(), parameters = allocate();
  return time_of(bench.communicator, rounds,
                 [&] { push_and_pull(bench.ps.servers, *transport, gradient, parameters); });
}

/// On the server alone, while the others wait.
double measure_bound(Bench& bench, int rounds) {
  bool const serves = bench.ps.placement.serves(bench.communicator.rank());
  if (!serves) return time_of(bench.communicator, rounds, [] {});
  auto const parameters = at::zeros({bench.layout.size()});
  ParameterStore store(bench.ps.policy, optimizer, bench.ps.workers(), parameters);
  FlatRange const all{0, bench.layout.size()};
  auto const gradient = at::zeros_like(parameters), received = at::zeros_like(parameters);
  return time_of(bench.communicator, rounds, [&] {
    for (int worker = 0; worker < bench.ps.workers(); ++worker) store.slot(worker).copy_(gradient);
    store.add_up(all);
    store.begin_update();
    store.apply_sum(all, lr, 1.0 / bench.ps.workers());
    for (int worker = 0; worker < bench.ps.workers(); ++worker) received.copy_(parameters);
  });
}

}  // namespace

TransportTimes measure_transports(World& world, std::int64_t bytes, double chunk_mb, int rounds) {
  Bench bench(world, bytes, chunk_mb);
  return {.two_sided = measure(bench, PsConfig::Transport::two_sided, rounds),
          .rma = measure(bench, PsConfig::Transport::rma, rounds),
          .bound = measure_bound(bench, rounds)};
}

}  // namespace stratagem
