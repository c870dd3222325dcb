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

}  // namespace
}  // namespace stratagem::test
