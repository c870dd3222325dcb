#include "strategy/plan.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_communicator.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/training.hpp"
#include "strategy/factory.hpp"

namespace stratagem {
namespace {

using gpu::MemoryCategory;

constexpr MemoryCategory lasting[]{MemoryCategory::parameters, MemoryCategory::gradients,
                                   MemoryCategory::optimizer, MemoryCategory::buffers};

struct Case {
  char const* what;
  StrategyConfig strategy;
  OptimizerConfig optimizer = {};
  Precision compute = Precision::fp32;
};

Case const cases[]{
    {"serial", SerialConfig{}},
    {"serial without momentum", SerialConfig{}, {.momentum = 0}},
    {"serial in bf16", SerialConfig{}, {}, Precision::bf16},
    {"serial in fp64", SerialConfig{}, {}, Precision::fp64},
    {"emulator of 3", SerialConfig{.emulate_ranks = 3}},
    {"ddp", DdpConfig{}},
    {"ddp in bf16", DdpConfig{.bucket_mb = 0.01}, {}, Precision::bf16},
};

/// What making the strategy added to the live bytes, once it was known how much that is.
gpu::MemoryUse allocated(Case const& of, Model const& model, Communicator& communicator) {
  trace::Recorder recorder({}, 0);
  auto const before = gpu::live_memory({});
  auto const strategy = make_strategy(of.strategy, {.model = model,
                                                    .communicator = communicator,
                                                    .recorder = recorder,
                                                    .device = {},
                                                    .optimizer = of.optimizer,
                                                    .precision = {.compute = of.compute}});
  auto use = gpu::live_memory({});
  for (std::size_t i = 0; i < gpu::memory_categories; ++i) use.bytes[i] -= before.bytes[i];
  return use;
}

TEST(Plan, PromisesTheBytesThatAStrategyAllocates) {
  SerialCommunicator communicator({});
  for (auto const* name : {"lenet", "tiny_residual", "tiny_odd"}) {
    auto const model = test::test_model(name);
    for (auto const& each : cases) {
      auto const plan =
          plan_strategy(each.strategy, model, each.optimizer, {.compute = each.compute}, 1);
      auto const use = allocated(each, model, communicator);
      for (auto const category : lasting)
        EXPECT_EQ(plan.memory[category], use[category])
            << each.what << ", " << name << ", "
            << gpu::memory_category_names[static_cast<std::size_t>(category)];
    }
  }
}

TEST(Plan, PromisesTheBytesThatAStepSends) {
  auto const model = test::test_model("lenet");
  test::Training const training{.strategy = DdpConfig{.bucket_mb = 0.05}, .steps = 4};
  for (int const ranks : {1, 2, 4}) {
    auto const plan =
        plan_strategy(training.strategy, model, training.optimizer, training.precision, ranks);
    run_ranks(ranks, 1, [&](Communicator& communicator) {
      auto const before = communicator.bytes_sent();
      test::train(training, communicator);
      EXPECT_EQ(communicator.bytes_sent() - before, training.steps * plan.bytes_sent_per_step)
          << ranks << " ranks";
    });
  }
}

TEST(Plan, WorkersAreRanksOrEmulated) {
  auto const model = test::test_model("lenet");
  auto const emulator =
      plan_strategy(SerialConfig{.emulate_ranks = 3, .micro_batches = 2}, model, {}, {}, 1);
  EXPECT_EQ(emulator.workers, 3);
  EXPECT_EQ(emulator.micro_batches, 2);
  EXPECT_EQ(emulator.bytes_sent_per_step, 0);
  EXPECT_EQ(plan_strategy(DdpConfig{}, model, {}, {}, 1000).workers, 1000);
  try {
    plan_strategy(SerialConfig{}, model, {}, {}, 2);
    FAIL() << "serial is one process";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(Plan, HashTellsBucketsApart) {
  auto const model = test::test_model("lenet");
  auto hash = [&](double bucket_mb) {
    return plan_strategy(DdpConfig{.bucket_mb = bucket_mb}, model, {}, {}, 2).hash;
  };
  EXPECT_EQ(hash(25), hash(25));
  EXPECT_NE(hash(25), hash(0.001));
}

}  // namespace
}  // namespace stratagem
