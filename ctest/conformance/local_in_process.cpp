#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/in_process.hpp"
#include "strategy/local/fragments.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem::test {
namespace {

Training residual(LocalConfig const& local, std::int64_t steps = 7) {
  return {.model = "tiny_residual", .strategy = local, .steps = steps};
}

/// The emulator's digest, without what only it knows in every step.
std::string emulated_parameters(Training const& training, int workers) {
  return digest_of(train_emulated(training, workers).parameters);
}

TEST(LocalInProcess, IsSerialTrainingsWhoseParametersAreAveraged) {
  for (auto const* model : {"tiny_residual", "tiny_odd"})
    for (int const workers : {2, 3, 4})
      for (int const inner_steps : {2, 3}) {
        Training training{.model = model,
                          .strategy = LocalConfig{.workers = workers, .inner_steps = inner_steps},
                          .steps = 7};
        SerialCommunicator alone({});
        EXPECT_EQ(digest_of(train(training, alone).parameters),
                  digest_of(averaged_serials(training, workers, inner_steps)))
            << model << ", " << workers << " workers, every " << inner_steps << " steps";
      }
}

/// The same in fp64, where what two formulas of one step round otherwise is too small to move a
/// value over the kink of a ReLU.
Training precise(LocalConfig const& local, std::int64_t steps) {
  auto training = residual(local, steps);
  training.precision.compute = Precision::fp64;
  return training;
}

/// Three rounds of DiLoCo against its definition.
TEST(LocalInProcess, TheOuterStepIsNesterovs) {
  for (auto const& [lr, momentum] :
       {std::pair(0.7, 0.9), std::pair(0.5, 0.0), std::pair(1.0, 0.6)}) {
    LocalConfig const local{
        .workers = 3, .inner_steps = 2, .outer_lr = lr, .outer_momentum = momentum};
    SerialCommunicator alone({});
    auto const own = train(precise(local, 6), alone).parameters;
    auto const expected = averaged_serials(precise({}, 6), 3, 2, Outer{lr, momentum});
    EXPECT_LT(greatest_distance(own, expected), 1e-12) << lr << " " << momentum;
    EXPECT_GT(greatest_distance(own, averaged_serials(precise({}, 6), 3, 2)), 1e-4)
        << "without an outer step";
  }
}

Streaming streaming(LocalConfig const& local, std::string const& model) {
  auto const layout = make_layout(test_model(model));
  Fragments const fragments(layout, local.fragments, local.inner_steps, local.delay);
  std::map<std::string, int> numbers;
  for (auto const& entry : layout.entries()) {
    auto const number = std::ranges::count_if(
        fragments.ranges(), [&](FlatRange const& range) { return range.end <= entry.offset; });
    EXPECT_TRUE(numbers.emplace(entry.spec.name, number).second) << "whole tensors";
  }
  Streaming streaming{
      .inner_steps = local.inner_steps,
      .fragments = local.fragments,
      .delay = local.delay,
      .mixing_factor = local.mixing_factor,
      .outer = {},
      .fragment_of = [numbers](std::string const& name) { return numbers.at(name); }};
  if (local.outer_lr != 1 || local.outer_momentum != 0)
    streaming.outer = Outer{local.outer_lr, local.outer_momentum};
  return streaming;
}

/// Where nothing is rounded otherwise, bit for bit.
TEST(LocalInProcess, FragmentsAreAveragedInTurn) {
  for (auto const& local :
       {LocalConfig{.workers = 3, .inner_steps = 3, .delay = 2},
        LocalConfig{.workers = 3, .inner_steps = 2, .fragments = 2},
        LocalConfig{.workers = 3, .inner_steps = 3, .fragments = 3},
        LocalConfig{.workers = 3, .inner_steps = 5, .fragments = 2, .delay = 1}}) {
    auto const training = residual(local, 13);
    SerialCommunicator alone({});
    EXPECT_EQ(digest_of(train(training, alone).parameters),
              digest_of(streamed_serials(training, 3, streaming(local, training.model))))
        << local.fragments << " fragments, delay " << local.delay;
  }
}

TEST(LocalInProcess, FragmentsAreMixedAndStepped) {
  for (auto const& local :
       {LocalConfig{.workers = 3, .inner_steps = 3, .delay = 1, .mixing_factor = 0.5},
        LocalConfig{.workers = 3, .inner_steps = 4, .fragments = 2, .mixing_factor = 0.25},
        LocalConfig{.workers = 3,
        .inner_steps = 4,
        .outer_lr = 0.7,
        .outer_momentum = 0.9,
        .fragments = 2,
        .delay = 1,
        .mixing_factor = 0.5},
        LocalConfig{.workers = 3,
        .inner_steps = 3,
        .outer_lr = 0.5,
        .outer_momentum = 0.6,
        .fragments = 3}}) {
    auto const training = precise(local, 9);
    auto const reference = streaming(local, training.model);
    SerialCommunicator alone({});
    auto const own = train(training, alone).parameters;
    EXPECT_LT(greatest_distance(own, streamed_serials(training, 3, reference)), 1e-12);
    auto later = reference, nearer = reference;
    ++later.delay;
    nearer.mixing_factor = 0.75;
    EXPECT_GT(greatest_distance(own, streamed_serials(training, 3, later)), 1e-4);
    EXPECT_GT(greatest_distance(own, streamed_serials(training, 3, nearer)), 1e-4);
  }
}

/// The comparison can fail: the steps between averagings count, and whether there are any.
TEST(LocalInProcess, OtherInnerStepsAreOtherNumbers) {
  auto const of = [](int inner_steps) {
    return digest_alone(residual({.workers = 2, .inner_steps = inner_steps}));
  };
  EXPECT_NE(of(2), of(3));
  EXPECT_EQ(of(3), of(3));
  EXPECT_NE(digest_of(averaged_serials(residual({}), 2, 2)), emulated_parameters(residual({}), 2));
}

TEST(LocalInProcess, DoesNotDependOnRanksOrInterleaving) {
  for (auto const& local : {LocalConfig{.workers = 6, .inner_steps = 3},
                            LocalConfig{.workers = 6, .inner_steps = 2, .begin_step = 3},
                            LocalConfig{.workers = 6,
                            .inner_steps = 2,
                            .begin_step = 1,
                            .outer_lr = 0.7,
                            .outer_momentum = 0.9}}) {
    expect_same_on_any_ranks(residual(local));
  }
}

/// On six ranks a fragment arrives at any time while they step.
TEST(LocalInProcess, FragmentsDoNotDependOnRanksOrInterleaving) {
  for (auto const& local :
       {LocalConfig{.workers = 6, .inner_steps = 4, .delay = 3},
        LocalConfig{.workers = 6, .inner_steps = 2, .fragments = 2, .mixing_factor = 0.5},
        LocalConfig{.workers = 6,
        .inner_steps = 4,
        .begin_step = 1,
        .outer_lr = 0.7,
        .outer_momentum = 0.9,
        .fragments = 2,
        .delay = 1,
        .mixing_factor = 0.5}})
    expect_same_on_any_ranks(residual(local, 8));
}

TEST(LocalInProcess, OneWorkerIsSerial) {
  auto const training = residual({.inner_steps = 3});
  SerialCommunicator alone({});
  EXPECT_EQ(fingerprint(train(training, alone)), emulated(training, 1));
}

/// Until begin_step the steps are those of DDP, whatever follows.
TEST(LocalInProcess, BeginsAsDdp) {
  for (int const workers : {2, 3, 4}) {
    auto const training = residual({.inner_steps = 2, .begin_step = 5}, 5);
    auto const expected = emulated_parameters(training, workers);
    run_ranks(workers, 1, [&](Communicator& communicator) {
      EXPECT_EQ(digest_of(train(training, communicator).parameters), expected);
    });
    auto longer = training;
    longer.steps = 6;
    run_ranks(workers, 1, [&](Communicator& communicator) {
      EXPECT_NE(digest_of(train(longer, communicator).parameters),
                emulated_parameters(longer, workers));
    });
  }
}

/// Between rounds the mean is shown and may be saved; nobody goes on from it.
TEST(LocalInProcess, DoesNotDependOnWhereRoundsEnd) {
  for (double const outer_lr : {1.0, 0.7}) {
    auto training =
        residual({.workers = 4, .inner_steps = 3, .begin_step = 1, .outer_lr = outer_lr}, 11);
    auto const expected = digest_alone(training);
    for (std::int64_t const steps : {1, 2, 4, 5}) {
      training.steps_per_round = steps;
      EXPECT_EQ(digest_alone(training), expected) << steps;
      run_ranks(2, 1, [&](Communicator& communicator) {
        EXPECT_EQ(digest_on(training, communicator), expected) << steps;
      });
    }
  }
}

/// Also where one ends with a fragment under way.
TEST(LocalInProcess, FragmentsDoNotDependOnWhereRoundsEnd) {
  for (double const outer_lr : {1.0, 0.7}) {
    auto training = residual({.workers = 4,
                              .inner_steps = 6,
                              .begin_step = 1,
                              .outer_lr = outer_lr,
                              .fragments = 2,
                              .delay = 2,
                              .mixing_factor = 0.5},
                             12);
    auto const expected = digest_alone(training);
    for (std::int64_t const steps : {1, 2, 3, 4, 5}) {
      training.steps_per_round = steps;
      EXPECT_EQ(digest_alone(training), expected) << steps;
      for (int const ranks : {2, 4})
        run_ranks(ranks, 1, [&](Communicator& communicator) {
          EXPECT_EQ(digest_on(training, communicator), expected) << steps << ", " << ranks;
        });
    }
  }
}

TEST(LocalInProcess, ComputesInBf16) {
  for (auto const& local :
       {LocalConfig{.workers = 4, .inner_steps = 2},
        LocalConfig{
            .workers = 4, .inner_steps = 4, .fragments = 2, .delay = 1, .mixing_factor = 0.5}}) {
    auto training = residual(local);
    training.precision = {.compute = Precision::bf16, .loss_scale = LossScale::none};
    auto const expected = digest_alone(training);
    run_ranks(2, 1, [&](Communicator& communicator) {
      EXPECT_EQ(digest_on(training, communicator), expected);
    });
  }
}

/// Also of a rank that computes nothing but finite numbers.
TEST(LocalInProcess, ANonFiniteLossEndsAllRanksAtTheNextAveraging) {
  for (int const workers : {2, 4}) {
    Training const training{.strategy = LocalConfig{.workers = workers, .inner_steps = 4},
                            .optimizer = {.lr = 1e30}};
    expect_non_finite_loss(training, 2, "at step 1, of worker 0");
  }
}

/// The next is that of a fragment, which is summed while ranks agree.
TEST(LocalInProcess, ANonFiniteLossEndsAllRanksAtTheNextSending) {
  Training const training{.strategy = LocalConfig{.inner_steps = 16, .fragments = 4, .delay = 3},
                          .optimizer = {.lr = 1e30}};
  expect_non_finite_loss(training, 2, "at step 1, of worker 0");
}

/// One that happens after the last averaging is found before anything is made of the parameters.
TEST(LocalInProcess, ANonFiniteLossIsFoundWhereARoundEnds) {
  Training const training{
      .strategy = LocalConfig{.inner_steps = 1000}, .optimizer = {.lr = 1e30}, .steps = 3};
  run_ranks(2, 1, [&](Communicator& communicator) {
    EXPECT_THROW(train(training, communicator), AgreedError);
  });
}

/// What one rank asks for reaches all with the next averaging, and none sooner.
TEST(LocalInProcess, RequestsWaitForAnAveraging) {
  auto const training = residual({.inner_steps = 3});
  run_worlds(2, 1, [&](World& world) {
    auto& communicator = world.all();
    auto const model = test_model(training.model);
    trace::Recorder recorder({}, 0);
    auto const member = make_member(training.strategy, parts_of(training, model, world, recorder));
    member.strategy->begin_round({});
    int const rank = communicator.rank();
    for (std::int64_t step = 0; step < 6; ++step) {
      auto const batch = training_batch(training, step, rank * training.global_batch / 2, 2);
      bool const asks = rank == 1 && step == 2;
      auto const result = member.strategy->step(
          batch, {.lr = 0.02, .requests = {.interrupt = asks, .save = rank == 1 && step == 1}});
      EXPECT_EQ(result.requests.interrupt, step == 2) << step;
      EXPECT_FALSE(result.requests.save) << "asked again, while it is due";
      EXPECT_EQ(result.labels, training.global_batch / 2) << "its own";
    }
  });
}

/// A fragment's sending is one, before it arrives.
TEST(LocalInProcess, RequestsWaitForASending) {
  auto const training = residual({.inner_steps = 6, .fragments = 2, .delay = 2});
  run_worlds(2, 1, [&](World& world) {
    auto& communicator = world.all();
    auto const model = test_model(training.model);
    trace::Recorder recorder({}, 0);
    auto const member = make_member(training.strategy, parts_of(training, model, world, recorder));
    member.strategy->begin_round({});
    for (std::int64_t step = 0; step < 9; ++step) {
      auto const batch = training_batch(training, step, communicator.rank() * 12, 2);
      bool const asks = communicator.rank() == 1;
      auto const result =
          member.strategy->step(batch, {.lr = 0.02, .requests = {.interrupt = asks}});
      EXPECT_EQ(result.requests.interrupt, step % 3 == 2) << step;
    }
    member.strategy->drain();
  });
}

}  // namespace
}  // namespace stratagem::test
