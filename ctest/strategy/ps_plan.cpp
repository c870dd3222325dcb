#include "strategy/ps/ps_plan.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "strategy/model_layout.hpp"
#include "support/tiny_models.hpp"

namespace stratagem {
namespace {

std::string refusal(PsConfig const& config, OptimizerConfig const& optimizer,
                    PrecisionConfig const& precision) {
  try {
    check_ps(config, optimizer, precision, 2);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(PsPlan, RefusesWhatNoServerDoes) {
  PrecisionConfig const fp32;
  EXPECT_EQ(refusal({}, {}, fp32), "");
  EXPECT_NE(refusal({}, {.clip_norm = 1}, fp32).find("clip_norm"), std::string::npos);
  EXPECT_NE(refusal({}, {}, {.compute = Precision::bf16}).find("loss_scale"), std::string::npos);
  EXPECT_EQ(refusal({}, {}, {.compute = Precision::bf16, .loss_scale = LossScale::none}), "");
  EXPECT_NE(refusal({.mode = PsMode::dana}, {.nesterov = true}, fp32).find("nesterov"),
            std::string::npos);
  EXPECT_NE(refusal({.slow_worker = 2}, {}, fp32).find("slow_worker"), std::string::npos);
}

TEST(PsPlan, GradientsAreMeansOverWhatAnUpdateTakes) {
  ServerPolicy const sync{.gate = ServerPolicy::Gate::bsp}, async;
  EXPECT_EQ(gradient_scale(sync, {}, 4), 0.25);
  EXPECT_EQ(gradient_scale(sync, {.reduction = Reduction::sum}, 4), 1);
  EXPECT_EQ(gradient_scale(async, {}, 4), 1);
}

TEST(PsPlan, MemoryCountsWhatThePolicyKeeps) {
  auto const layout = make_layout(test::tiny_residual(1, 10));
  auto const plan = plan_servers({.chunk_mb = 1}, layout, 4, 4);  // one chunk, one server
  auto const shard = plan.shards.front() * 4;
  auto of = [&](ServerPolicy const& policy, OptimizerConfig const& optimizer) {
    return server_memory(policy, optimizer, plan, 4).total() / shard;
  };
  // Parameters, three gradients, momentum; then what three workers were handed; then two more
  // momenta.
  EXPECT_EQ(of({.gate = ServerPolicy::Gate::bsp}, {}), 1 + 3 + 1);
  EXPECT_EQ(of({}, {}), 1 + 3 + 1 + 3);
  EXPECT_EQ(of({.momentum = ServerPolicy::Momentum::look_ahead}, {}), 1 + 3 + 3 + 3);
  EXPECT_EQ(of({}, {.momentum = 0}), 1 + 3 + 3);
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
