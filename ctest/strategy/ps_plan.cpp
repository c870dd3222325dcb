#include "strategy/ps/ps_plan.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/server_work.hpp"
#include "strategy/state/model_layout.hpp"
#include "support/tiny_models.hpp"

namespace stratagem {
namespace {

/// All but its servers.
PsPlan of_workers(int workers, PsConfig const& config) {
  return {config, policy_of(config, workers), Placement(workers), {}};
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
  EXPECT_NE(refusal({.mode = PsMode::dana}, {.rule = SgdConfig{.nesterov = true}}).find("nesterov"),
            std::string::npos);
  auto const rma = PsConfig::Transport::rma;
  EXPECT_NE(refusal({.transport = rma, .mode = PsMode::delayed_sync}).find("a delay"),
            std::string::npos);
  EXPECT_NE(refusal({.transport = rma, .mode = PsMode::async, .pull_every = 2}).find("pull_every"),
            std::string::npos);
  EXPECT_NE(
      refusal({.transport = rma, .mode = PsMode::async, .pull_at_lag = 2}).find("pull_at_lag"),
      std::string::npos);
  PsConfig cached{.transport = rma, .mode = PsMode::ssp, .cached_reads = true};
  OptimizerConfig const without{.rule = SgdConfig{.momentum = 0}};
  EXPECT_NE(refusal(cached, without).find("advanced.cached_reads"), std::string::npos);
  cached.transport = PsConfig::Transport::two_sided;
  EXPECT_EQ(refusal(cached, without), "");
  EXPECT_NE(refusal(cached).find("optimizer.momentum: 0"), std::string::npos);
  EXPECT_NE(refusal({.slow_worker = 2}).find("slow_worker"), std::string::npos);
}

/// What scales single gradients, or looks ahead along the momentum.
TEST(PsPlan, RefusesWhatIsDefinedForSgdUnderOtherOptimizers) {
  struct Case {
    char const* part;
    PsConfig config;
  };
  for (auto const& optimizer : all_optimizers()) {
    bool const is_sgd = std::holds_alternative<SgdConfig>(optimizer.rule);
    for (auto const& [part, config] :
         {Case{"momentum", {.mode = PsMode::dana}},
          Case{"momentum", {.mode = PsMode::async, .momentum = ServerPolicy::Momentum::per_worker}},
          Case{"momentum", {.mode = PsMode::delayed_sync}},
          Case{"weight", {.mode = PsMode::modified}}, Case{"weight", {.mode = PsMode::gap_aware}},
          Case{"dc_lambda", {.mode = PsMode::dc}}, Case{"dc_lambda", {.mode = PsMode::dc_adaptive}},
          Case{"pushes", {.mode = PsMode::async, .pushes = 2}},
          Case{"over_cap", {.mode = PsMode::lag_cap, .over_cap = ServerPolicy::OverCap::attenuate}},
          Case{"lag_cap", {.servers = 2, .mode = PsMode::lag_cap}},
          Case{"cached_reads", {.mode = PsMode::ssp, .cached_reads = true}},
          Case{"pulls", {.mode = PsMode::async, .pulls = ServerPolicy::Pulls::chunkwise}}}) {
      auto const told = refusal(config, optimizer);
      if (is_sgd && config.cached_reads) continue;  // its momentum is refused
      EXPECT_EQ(told.empty(), is_sgd) << told;
      if (is_sgd) continue;
      EXPECT_NE(told.find(path_of_part(part)), std::string::npos) << told;
      EXPECT_NE(told.find(name_of(optimizer)), std::string::npos) << told;
    }
    for (auto const mode : {PsMode::sync, PsMode::async, PsMode::ssp, PsMode::lag_cap,
                            PsMode::softsync, PsMode::backup})
      EXPECT_EQ(refusal({.mode = mode}, optimizer), "");
    EXPECT_EQ(refusal({.mode = PsMode::delayed_sync, .momentum = ServerPolicy::Momentum::shared},
                      optimizer),
              "");
  }
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
  auto const plan = plan_ps({.chunk_mb = 1}, layout, 4, 4).servers;  // one chunk, one server
  auto const shard = plan.shards.front() * 4;
  auto of = [&](ServerPolicy const& policy, OptimizerConfig const& optimizer) {
    return server_memory(policy, optimizer, plan.shards.front(), 3, 4).total() / shard;
  };
  // Parameters, three gradients, momentum; then what three workers were handed; then two more
  // momenta.
  EXPECT_EQ(of({.gate = ServerPolicy::Gate::bsp}, {}), 1 + 3 + 1);
  EXPECT_EQ(of({}, {}), 1 + 3 + 1 + 3);
  EXPECT_EQ(of({.momentum = ServerPolicy::Momentum::look_ahead}, {}), 1 + 3 + 3 + 3);
  EXPECT_EQ(of({}, {.rule = SgdConfig{.momentum = 0}}), 1 + 3 + 3);
  // Parameters where the momentum leads; a sum of gradients.
  EXPECT_EQ(of({.gate = ServerPolicy::Gate::bsp,
                .momentum = ServerPolicy::Momentum::look_ahead,
                .delay = 1},
               {}),
            1 + 3 + 1 + 1);
  EXPECT_EQ(of({.gate = ServerPolicy::Gate::softsync, .count = 2}, {}), 1 + 3 + 1 + 3 + 1);
  // Mean squares of gradients.
  EXPECT_EQ(of({.correction = 2, .correction_decay = 0.9}, {}), 1 + 3 + 1 + 3 + 1);
  // And of updates.
  EXPECT_EQ(of({.weight = ServerPolicy::Weight::inverse_gap}, {}), 1 + 3 + 1 + 3 + 1);
}

/// To the byte, by category.
TEST(PsPlan, AStoreHoldsWhatIsPlanned) {
  constexpr std::int64_t shard = 1001;
  constexpr int workers = 3;
  for (auto const& ps :
       {PsConfig{}, PsConfig{.mode = PsMode::async}, PsConfig{.mode = PsMode::dana},
        PsConfig{.mode = PsMode::dc}, PsConfig{.mode = PsMode::dc_adaptive},
        PsConfig{.mode = PsMode::gap_aware},
        PsConfig{.mode = PsMode::gap_aware, .dc_lambda = 1, .dc_decay = 0},
        PsConfig{.mode = PsMode::softsync}, PsConfig{.mode = PsMode::delayed_sync}})
    for (auto const& optimizer : {OptimizerConfig{}, OptimizerConfig{.rule = SgdConfig{0}}}) {
      auto const policy = policy_of(ps, workers);
      auto const before = gpu::live_memory({});
      auto const store = [&] {
        gpu::MemoryScope const scope(gpu::MemoryCategory::parameters);
        auto parameters = at::zeros({shard});
        return ParameterStore(policy, optimizer, workers, std::move(parameters));
      }();
      auto const planned = server_memory(policy, optimizer, shard, workers, 4);
      auto const now = gpu::live_memory({});
      for (std::size_t i = 0; i < gpu::memory_categories; ++i)
        EXPECT_EQ(now.bytes[i] - before.bytes[i], planned.bytes[i])
            << gpu::memory_category_names[i] << " of mode " << static_cast<int>(ps.mode);
    }
}

TEST(PsPlan, MemoryCountsWhatTheOptimizerKeeps) {
  constexpr std::int64_t shard = 100;
  for (auto const& optimizer : all_optimizers()) {
    auto const use = server_memory({}, optimizer, shard, 3, 8);
    EXPECT_EQ(use[gpu::MemoryCategory::optimizer], 8 * shard * state_count(optimizer));
  }
}

TEST(PsPlan, APushIsMeasured) {
  for (auto const work : server_works()) {
    auto const small = time_push(work, {}, 1 << 16);
    EXPECT_GT(small, 0) << work;
    EXPECT_GT(time_push(work, {}, 1 << 21), 4 * small) << work;
    EXPECT_GT(time_push(work, {}, 1 << 21, {Code::fp16}), 4 * small) << work;
  }
}

TEST(PsPlan, AllRanksMakeTheSamePlan) {
  auto const layout = make_layout(test::tiny_residual(1, 10));
  PsConfig const config{.servers = 2, .chunk_mb = 1.0 / 256};
  auto const plan = plan_ps(config, layout, 5, 4), again = plan_ps(config, layout, 5, 4);
  EXPECT_EQ(plan.servers.hash(), again.servers.hash());
  EXPECT_EQ(plan.placement.hash(), again.placement.hash());
  auto const other = plan_ps({.servers = 1, .chunk_mb = 1.0 / 256}, layout, 5, 4);
  EXPECT_NE(plan.servers.hash(), other.servers.hash());
  EXPECT_NE(plan.placement.hash(), other.placement.hash());
}

}  // namespace
}  // namespace stratagem
