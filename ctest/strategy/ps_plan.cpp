#include "strategy/ps/ps_plan.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "strategy/server_work.hpp"
#include "strategy/shared/model_layout.hpp"
#include "support/tiny_models.hpp"

namespace stratagem {
namespace {

/// All but its servers.
PsPlan of_workers(int workers, PsConfig const& config) {
  PsPlan plan{config, policy_of(config, workers), {}};
  for (int rank = 0; rank < workers; ++rank) plan.servers.roles.workers.push_back(rank);
  return plan;
}

std::string refusal(PsConfig const& config, OptimizerConfig const& optimizer = {}) {
  try {
    check_ps(of_workers(2, config), optimizer);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(PsPlan, RefusesWhatNoServerDoes) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.mode = PsMode::dana}, {.nesterov = true}).find("nesterov"),
            std::string::npos);
  auto const rma = PsConfig::Transport::rma;
  EXPECT_NE(refusal({.transport = rma, .mode = PsMode::delayed_sync}).find("a delay"),
            std::string::npos);
  EXPECT_NE(refusal({.transport = rma, .mode = PsMode::async, .pull_every = 2}).find("pull_every"),
            std::string::npos);
  EXPECT_NE(
      refusal({.transport = rma, .mode = PsMode::async, .pull_at_lag = 2}).find("pull_at_lag"),
      std::string::npos);
  EXPECT_NE(refusal({.slow_worker = 2}).find("slow_worker"), std::string::npos);
}

TEST(PsPlan, GradientsAreMeansOverWhatTheyAreSumsOf) {
  auto const factor = [](PsConfig const& config, OptimizerConfig const& optimizer = {}) {
    return make_gradient_scale(of_workers(4, config), optimizer, {}).value();
  };
  EXPECT_EQ(factor({}), 0.25);
  EXPECT_EQ(factor({}, {.reduction = Reduction::sum}), 1);
  EXPECT_EQ(factor({.micro_batches = 2}), 0.125);
  EXPECT_EQ(factor({.micro_batches = 2}, {.reduction = Reduction::sum}), 0.5);
  EXPECT_EQ(factor({.mode = PsMode::async}), 1);
  EXPECT_EQ(factor({.mode = PsMode::async, .micro_batches = 2}), 0.5);
}

TEST(PsPlan, MemoryCountsWhatThePolicyKeeps) {
  auto const layout = make_layout(test::tiny_residual(1, 10));
  auto const plan = plan_servers({.chunk_mb = 1}, layout, 4, 4);  // one chunk, one server
  auto const shard = plan.shards.front() * 4;
  auto of = [&](ServerPolicy const& policy, OptimizerConfig const& optimizer) {
    return server_memory(policy, optimizer, plan.shards.front(), 3, 4).total() / shard;
  };
  // Parameters, three gradients, momentum; then what three workers were handed; then two more
  // momenta.
  EXPECT_EQ(of({.gate = ServerPolicy::Gate::bsp}, {}), 1 + 3 + 1);
  EXPECT_EQ(of({}, {}), 1 + 3 + 1 + 3);
  EXPECT_EQ(of({.momentum = ServerPolicy::Momentum::look_ahead}, {}), 1 + 3 + 3 + 3);
  EXPECT_EQ(of({}, {.momentum = 0}), 1 + 3 + 3);
  // Parameters where the momentum leads; a sum of gradients.
  EXPECT_EQ(of({.gate = ServerPolicy::Gate::bsp,
                .momentum = ServerPolicy::Momentum::look_ahead,
                .delay = 1},
               {}),
            1 + 3 + 1 + 1);
  EXPECT_EQ(of({.gate = ServerPolicy::Gate::softsync, .count = 2}, {}), 1 + 3 + 1 + 3 + 1);
}

TEST(PsPlan, APushIsMeasured) {
  for (auto const work : server_works()) {
    auto const small = time_push(work, {}, 1 << 16);
    EXPECT_GT(small, 0) << work;
    EXPECT_GT(time_push(work, {}, 1 << 21), 4 * small) << work;
  }
}

TEST(PsPlan, AllRanksMakeTheSamePlan) {
  auto const layout = make_layout(test::tiny_residual(1, 10));
  PsConfig const config{.servers = 2, .chunk_mb = 1.0 / 256};
  EXPECT_EQ(plan_servers(config, layout, 5, 4).hash(), plan_servers(config, layout, 5, 4).hash());
  EXPECT_NE(plan_servers(config, layout, 5, 4).hash(),
            plan_servers({.servers = 1, .chunk_mb = 1.0 / 256}, layout, 5, 4).hash());
}

}  // namespace
}  // namespace stratagem
