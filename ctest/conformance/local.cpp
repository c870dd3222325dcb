#include <utility>

#include <gtest/gtest.h>

#include "conformance/expected.hpp"

namespace stratagem::test {
namespace {

constexpr int workers = 12;  // which 1, 2, 3 and 4 ranks share out evenly

void expect_equal_to_emulator(Training const& training, int emulated_workers) {
  SerialConfig const serial{.micro_batches =
                                std::get<LocalConfig>(training.strategy).micro_batches};
  auto expected = world().rank() == 0 ? emulated(training, emulated_workers, serial) : "";
  world().broadcast(expected, 0);
  expect_result(training, expected, Replicas::everywhere);
}

TEST(Local, AveragingInEveryStepEqualsTheEmulatorBitForBit) {
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd", "tiny_exported"}) {
    SCOPED_TRACE(model);
    Training training{.model = model, .strategy = LocalConfig{.inner_steps = 1}};
    expect_equal_to_emulator(training, world().size());
    training.strategy = LocalConfig{.inner_steps = 1, .micro_batches = 2};
    expect_equal_to_emulator(training, world().size());
  }
}

TEST(Local, SoDoWorkersThatShareARank) {
  for (auto const* model : {"tiny_residual", "tiny_odd"})
    expect_equal_to_emulator(
        {.model = model,
         .strategy = LocalConfig{.workers = workers, .inner_steps = 1, .micro_batches = 2},
         .optimizer = {.lr = 0.02, .weight_decay = 1e-3, .rule = SgdConfig{.nesterov = true}},
         .steps = 6,
         .global_batch = 48},
        workers);
}

TEST(Local, EqualsItselfOnOneRankBitForBit) {
  LocalConfig const local{.workers = workers, .inner_steps = 3, .begin_step = 4};
  auto diloco = local;
  diloco.outer_lr = 0.7;
  diloco.outer_momentum = 0.9;
  for (auto const& [model, strategy] :
       {std::pair("lenet", local), std::pair("tiny_residual", local), std::pair("tiny_odd", local),
        std::pair("tiny_residual", diloco)}) {
    SCOPED_TRACE(model);
    Training const training{.model = model, .strategy = strategy, .steps = 12};
    expect_same_as_on_one_rank(training);
  }
}

LocalConfig const streaming[]{
    {.workers = workers, .inner_steps = 4, .delay = 3},
    {.workers = workers, .inner_steps = 2, .fragments = 2, .mixing_factor = 0.5},
    {.workers = workers,
     .inner_steps = 6,
     .begin_step = 1,
     .outer_lr = 0.7,
     .outer_momentum = 0.9,
     .fragments = 2,
     .delay = 2,
     .mixing_factor = 0.5}};

TEST(Local, FragmentsEqualThemselvesOnOneRankBitForBit) {
  for (auto const* model : {"tiny_residual", "tiny_odd"})
    for (auto const& local : streaming) {
      SCOPED_TRACE(model);
      expect_same_as_on_one_rank({.model = model, .strategy = local, .steps = 12});
    }
}

/// Each rank plays one worker, and steps while a fragment is under way.
TEST(Local, SoDoThoseThatAreSummedWhileRanksStep) {
  if (world().size() == 1) return;
  for (auto local : streaming) {
    local.workers = world().size();
    for (std::int64_t const steps_per_round : {0, 5})
      expect_same_as_on_one_rank(
          {.model = "lenet", .strategy = local, .steps = 12, .steps_per_round = steps_per_round});
  }
}

}  // namespace
}  // namespace stratagem::test
