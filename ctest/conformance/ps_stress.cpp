#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "conformance/expected.hpp"
#include "strategy/ps/async_server.hpp"
#include "strategy/ps/sync_server.hpp"
#include "strategy/state/model_layout.hpp"

// Real servers and transports, and gradients that tell whose they are: small whole numbers, whose
// sums show which pushes are in the parameters, and whether all elements have the same ones.
// Processes are stopped and go on at random meanwhile. STRATAGEM_STRESS_UPDATES says how many
// pushes there are.

namespace stratagem::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t usual_pushes = 120;

/// The n-th gradient of worker w has n (1 + i mod 97) in every element i of its own, i mod W = w,
/// and 0 in all others. With learning rate 1 the parameters, which begin with 0, are what was
/// summed up, and show of every worker how many pushes are in them.
class Pattern {
 public:
  Pattern(std::int64_t size, int workers)
      : workers_(workers),
        worker_of_(at::arange(size, at::kLong).remainder_(workers)),
        factor_(at::arange(size, at::kDouble).remainder_(97).add_(1)) {}

  at::Tensor gradient(int worker, std::int64_t push) const {
    return factor_ * worker_of_.eq(worker) * static_cast<double>(push);
  }
  /// Pushes of each worker that are in this part of the parameters, as far as its first elements
  /// tell: NaN where it cannot be.
  at::Tensor pushes_in(at::Tensor const& part, FlatRange range) const {
    auto const sums = -(part / factor_.slice(0, range.begin, range.end)).narrow(0, 0, workers_);
    auto const pushes = ((sums * 8 + 1).sqrt() - 1) / 2;
    return at::zeros({workers_}, at::kDouble)
        .scatter_(0, worker_of_.slice(0, range.begin, range.begin + workers_), pushes);
  }
  /// Whether all of it has these pushes.
  bool whole(at::Tensor const& part, FlatRange range, at::Tensor const& pushes) const {
    auto const sums =
        (pushes * (pushes + 1) / 2).index_select(0, worker_of_.slice(0, range.begin, range.end));
    return at::equal(part, sums * factor_.slice(0, range.begin, range.end) * -1);
  }

 private:
  std::int64_t workers_;
  at::Tensor worker_of_, factor_;  ///< of every element
};

/// Stops other ranks, each for some milliseconds, for as long as it lives. One rank alone does it:
/// two could stop each other for ever.
class Disturber {
 public:
  Disturber()
      : thread_(
            [pids = world().all_gather(std::to_string(::getpid()))](std::stop_token const& over) {
              if (world().rank() != 0) return;
              CounterRandom const random(1, "who is stopped");
              for (std::uint64_t i = 0; !over.stop_requested(); ++i) {
                auto const words = random.block(i);
                auto const victim = std::stoi(pids[1 + words[0] % (pids.size() - 1)]);
                ::kill(victim, SIGSTOP);
                std::this_thread::sleep_for(words[1] % 8 * 500us);
                ::kill(victim, SIGCONT);
                std::this_thread::sleep_for(words[2] % 8 * 500us);
              }
            }) {}

 private:
  std::jthread thread_;
};

/// What every rank has of a stress.
struct Stress {
  Training training;
  Model model = test_model(training.model);
  std::unique_ptr<World> all = make_world({}, discover_process(world()), world(), nullptr);
  Communicator& communicator = all->all();
  trace::Recorder recorder{{}, 0};
  StrategyParts parts = parts_of(training, model, *all, recorder);
  PsConfig ps = std::get<PsConfig>(training.strategy);
  ParameterLayout layout = make_layout(model);
  PsPlan planned = plan_ps(ps, layout, communicator.size(), sizeof(double));
  ServerPlan const& plan = planned.servers;

  bool chunkwise() const { return ps.pulls == ServerPolicy::Pulls::chunkwise; }
  std::size_t domains() const { return chunkwise() ? plan.chunks.size() : plan.shards.size(); }
  std::size_t domain_of(ServerChunk const& chunk) const {
    return static_cast<std::size_t>(chunkwise() ? chunk.index : chunk.server);
  }
};

/// The last numbers of pushes that a worker saw of each version domain.
using Seen = std::vector<at::Tensor>;

/// Torn or mixed reads of what was pulled: parts that are not whole, that lack own pushes, or that
/// go back.
std::int64_t count_torn(Stress const& stress, Pattern const& pattern, at::Tensor const& flat,
                        int worker, std::int64_t own, Seen& seen) {
  std::int64_t torn = 0;
  Seen now(seen.size());
  for (auto const& chunk : stress.plan.chunks) {
    auto const part = in_flat(flat, chunk);
    auto& pushes = now[stress.domain_of(chunk)];
    if (!pushes.defined()) pushes = pattern.pushes_in(part, chunk.range);
    torn += pattern.whole(part, chunk.range, pushes) ? 0 : 1;
  }
  for (std::size_t domain = 0; domain < seen.size(); ++domain) {
    bool const forward = now[domain].ge(seen[domain]).all().item<bool>();
    bool const has_own = now[domain][worker].item<double>() == static_cast<double>(own);
    torn += forward && has_own ? 0 : 1;
  }
  seen = std::move(now);
  return torn;
}

void be_worker(Stress& stress, std::int64_t pushes) {
  auto const transport = make_transport(stress.planned, stress.parts);
  int const worker = stress.planned.placement.seat_of(stress.communicator.rank()).worker;
  Pattern const pattern(stress.layout.size(), stress.planned.workers());
  auto const flat = stress.parts.allocate(gpu::MemoryCategory::parameters, stress.layout.size());
  auto const gradient = at::zeros_like(flat);
  Seen seen(stress.domains(), at::zeros({stress.planned.workers()}, at::kDouble));
  auto& communicator = stress.communicator;
  std::int64_t torn = 0;
  for (std::int64_t push = 1; push <= pushes + 1; ++push) {
    bool const last = push > pushes;
    PushHeader const line{.last = last,
                          .step = push - 1,
                          .lr = 1,
                          .collectives = in_message(communicator.collectives().fingerprint())};
    if (!last) gradient.copy_(pattern.gradient(worker, push));
    std::vector<Work> works;
    for (int const server : stress.planned.placement.server_ranks())
      works.push_back(communicator.send(to_message(line), server, line_tag));
    if (!last)
      works.push_back(communicator.receive(empty_message(),
                                           stress.planned.placement.rank_of_server(0), answer_tag));
    for (auto const& chunk : stress.plan.chunks) {
      if (!last) works.push_back(transport->push(in_flat(gradient, chunk), chunk));
      works.push_back(transport->pull(in_flat(flat, chunk), chunk));
    }
    for (auto& work : works) work.wait_on_host();
    torn += count_torn(stress, pattern, flat, worker, std::min(push, pushes), seen);
  }
  EXPECT_EQ(torn, 0) << "torn reads of worker " << worker;
  for (auto const& counts : seen)
    EXPECT_TRUE(counts.eq(static_cast<double>(pushes)).all().item<bool>())
        << "all pushes are in the sum: " << counts;
}

template <class Server>
void be_server(Stress& stress, std::int64_t pushes) {
  Server server(stress.planned, stress.parts);
  std::map<std::string, at::Tensor> zeros;
  for (auto const& entry : stress.layout.entries())
    zeros[entry.spec.name] = at::zeros(entry.spec.shape, at::kDouble);
  load(server.state(), State::parameters, stress.model, zeros);
  server.serve({.first_step = 0, .end_step = pushes});
  EXPECT_EQ(server.counts().dropped, 0);
}

void expect_nothing_torn(PsConfig ps) {
  ps.servers = std::min(ps.servers, world().size() - 1);
  Stress stress{
      .training = {.model = "tiny_residual",
                   .strategy = ps,
                   .optimizer = {.rule = SgdConfig{.momentum = 0}, .reduction = Reduction::sum},
                   .precision = {.compute = Precision::fp64}}};
  char const* const wanted = std::getenv("STRATAGEM_STRESS_UPDATES");
  auto const all = wanted != nullptr ? std::stoll(wanted) : usual_pushes;
  auto const each = std::max<std::int64_t>(all / stress.planned.workers(), 1);
  bool const async = stress.planned.policy.asynchronous();
  auto const began = monotonic_ns();
  world().barrier();
  {
    Disturber const disturber;
    if (!stress.planned.placement.serves(world().rank()))
      be_worker(stress, each);
    else if (async)
      be_server<AsyncPsServer>(stress, each);
    else
      be_server<SyncPsServer>(stress, each);
    stress.communicator.barrier().wait_on_host();  // while a rank may still be stopped
  }
  if (world().rank() == 0)
    std::cout << each * stress.planned.workers() << " pushes to " << ps.servers << " servers in "
              << format_duration(static_cast<double>(monotonic_ns() - began) * 1e-9) << "\n";
}

class PsStress : public testing::TestWithParam<PsConfig> {};

TEST_P(PsStress, NothingIsTornThoughProcessesStop) {
  expect_nothing_torn(GetParam());
}

constexpr auto rma = PsConfig::Transport::rma;

INSTANTIATE_TEST_SUITE_P(
    All, PsStress,
    testing::Values(
        PsConfig{.chunk_mb = 1.0 / 64, .mode = PsMode::async},
        PsConfig{.chunk_mb = 1.0 / 64, .transport = rma, .mode = PsMode::async},
        PsConfig{.servers = 2, .chunk_mb = 1.0 / 64, .transport = rma, .mode = PsMode::ssp},
        PsConfig{.servers = 2,
                 .chunk_mb = 1.0 / 64,
                 .transport = rma,
                 .mode = PsMode::async,
                 .pulls = ServerPolicy::Pulls::chunkwise},
        PsConfig{.servers = 2, .chunk_mb = 1.0 / 64, .transport = rma, .mode = PsMode::sync}),
    [](auto const& info) {
      auto const& ps = info.param;
      return std::string(ps.mode == PsMode::async ? "async"
                         : ps.mode == PsMode::ssp ? "ssp"
                                                  : "sync") +
             (ps.transport == rma ? "_rma" : "_two_sided") +
             (ps.pulls == ServerPolicy::Pulls::chunkwise ? "_chunkwise" : "");
    });

}  // namespace
}  // namespace stratagem::test
