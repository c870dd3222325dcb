#include "strategy/local/local_plan.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_communicator.hpp"
#include "conformance/training.hpp"
#include "strategy/shared/model_layout.hpp"

namespace stratagem::test {
namespace {

StrategyPlan plan(LocalConfig const& local, int ranks, OptimizerConfig const& optimizer = {},
                  PrecisionConfig const& precision = {}) {
  return plan_strategy(local, test_model("lenet"), optimizer, precision, ranks);
}

std::string refusal(LocalConfig const& local, int ranks, OptimizerConfig const& optimizer = {},
                    PrecisionConfig const& precision = {}) {
  try {
    static_cast<void>(plan(local, ranks, optimizer, precision));
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "not refused";
}

TEST(LocalPlan, DealsWorkersToRanks) {
  EXPECT_EQ(plan({}, 4).workers, 4);
  auto const shared = plan({.workers = 12}, 4);
  EXPECT_EQ(shared.workers, 12);
  EXPECT_EQ(shared.roles.workers.size(), 4U);
  EXPECT_EQ(local_of(shared)->workers_of_rank(), 3);
  EXPECT_NE(refusal({.workers = 6}, 4).find("a multiple of 4"), std::string::npos);
  EXPECT_NE(refusal({.workers = 2}, 4).find("2 workers on 4 ranks"), std::string::npos);
}

TEST(LocalPlan, RefusesWhatGoesByTheGradientsOfAll) {
  EXPECT_NE(refusal({}, 2, {.clip_norm = 1}).find("optimizer.clip_norm"), std::string::npos);
  EXPECT_NE(refusal({}, 2, {.reduction = Reduction::sum}).find("reduction: sum"),
            std::string::npos);
  EXPECT_NE(refusal({}, 2, {}, scaled_bf16).find("precision.loss_scale"), std::string::npos);
}

TEST(LocalPlan, TheOuterStepNeedsMeansOfParameters) {
  EXPECT_NE(refusal({.outer_lr = 0.7}, 1).find("one worker"), std::string::npos);
  EXPECT_NE(refusal({.inner_steps = 1, .outer_momentum = 0.9}, 2).find("inner_steps: 1"),
            std::string::npos);
  auto const plain = plan({}, 2), outer = plan({.outer_lr = 0.7, .outer_momentum = 0.9}, 2);
  using gpu::MemoryCategory;
  auto const layout = static_cast<std::int64_t>(make_layout(test_model("lenet")).size());
  EXPECT_EQ(outer.memory[MemoryCategory::optimizer] - plain.memory[MemoryCategory::optimizer],
            2 * 4 * layout);
  EXPECT_EQ(outer.choices.at("strategy.outer_lr"), "0.7");
  EXPECT_NE(outer.hash(), plain.hash());
  EXPECT_EQ(outer.saved_copies, plain.saved_copies + 1);
}

TEST(LocalPlan, SaysOnWhatItsNumbersDepend) {
  auto const local = plan({.inner_steps = 8, .begin_step = 100}, 2);
  EXPECT_FALSE(local.numbers_of_serial);
  EXPECT_EQ(local.choices.at("strategy.inner_steps"), "8");
  EXPECT_EQ(local.choices.at("strategy.begin_step"), "100");
  EXPECT_EQ(local.sync_every, 8);
  EXPECT_FALSE(local.shares_results());
  EXPECT_TRUE(local.meets_after_rounds());
  EXPECT_EQ(local.saved_copies, 3);
  EXPECT_EQ(local.warm_start, 100);
  EXPECT_EQ(local.begins_like->sync_every, 1);
  EXPECT_NE(local.hash(), plan({.inner_steps = 9, .begin_step = 100}, 2).hash());

  for (auto const& alike : {plan({.inner_steps = 1}, 2), plan({.inner_steps = 8}, 1)}) {
    EXPECT_TRUE(alike.numbers_of_serial);
    EXPECT_TRUE(alike.choices.empty());
    EXPECT_TRUE(alike.shares_results());
    EXPECT_EQ(alike.saved_copies, 1);
    EXPECT_EQ(alike.warm_start, 0);
  }
}

/// In four steps as many bytes as an averaging has, and the plan's mean of them; before begin_step
/// in every one.
TEST(LocalPlan, PromisesTheBytesThatAreSent) {
  for (auto const* model : {"lenet", "tiny_residual"})
    for (int const ranks : {1, 2, 4})
      for (int const workers : {0, 4, 8}) {
        LocalConfig const local{.workers = workers, .inner_steps = 4, .begin_step = 1};
        Training const training{.model = model, .strategy = local, .steps = 9};
        auto const planned =
            plan_strategy(local, test_model(model), training.optimizer, training.precision, ranks);
        auto const exchange = local_of(planned)->exchange_bytes;
        bool const apart = local_of(planned)->apart();
        EXPECT_EQ(planned.bytes_sent_per_step, apart ? exchange / 4 : exchange);
        run_ranks(ranks, 1, [&](Communicator& communicator) {
          auto const sent = train(training, communicator).bytes_sent;
          for (std::int64_t step = 0; step < 9; ++step)
            EXPECT_EQ(sent[static_cast<std::size_t>(step)], !apart || step % 4 == 0 ? exchange : 0)
                << model << ", step " << step << ", " << ranks << " ranks, " << workers;
        });
      }
}

}  // namespace
}  // namespace stratagem::test
