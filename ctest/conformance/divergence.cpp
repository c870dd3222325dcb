#include <optional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "strategy/state/replicas.hpp"

namespace stratagem::test {
namespace {

constexpr int ranks = 3;
constexpr double kib = 1.0 / 1024;

/// Makes one bit of what rank `rank` holds of a tensor another.
void flip(Participant& participant, std::string const& name) {
  for (auto const& [held, tensor] : participant.state().replicas)
    if (held == name) static_cast<std::byte*>(tensor.data_ptr())[5] ^= std::byte{16};
}

/// Steps of one strategy by hand, on ranks that are threads; rank 1 or 2 is damaged between rounds.
struct Damaged {
  Training training;
  std::string tensor;
  int rank = 2;
  std::int64_t flipped_after = 3;  ///< steps
  std::int64_t compared_every = 4;
};

/// What each rank ends with.
std::vector<std::optional<Error>> ends_of(Damaged const& damaged) {
  std::vector<std::optional<Error>> ends(ranks);
  auto training = damaged.training;
  training.steps_per_round = 1;
  training.compare_every = damaged.compared_every;
  try {
    run_ranks(ranks, 1, [&](Communicator& communicator) {
      auto own = training;
      own.between = [&](Participant& participant, std::int64_t step) {
        if (step == damaged.flipped_after && communicator.rank() == damaged.rank)
          flip(participant, damaged.tensor);
      };
      try {
        static_cast<void>(train(own, communicator));
      } catch (Error const& error) {
        ends[static_cast<std::size_t>(communicator.rank())] = error;
        throw;
      }
    });
  } catch (Error const&) {
  }
  return ends;
}

void expect_found(Damaged const& damaged, std::string const& where, std::int64_t step) {
  for (auto const& end : ends_of(damaged)) {
    ASSERT_TRUE(end.has_value()) << "nobody noticed";
    EXPECT_EQ(end->code(), ExitCode::diverged) << end->what();
    std::string const text = end->what();
    EXPECT_NE(text.find("at step " + std::to_string(step) + ": "), std::string::npos) << text;
    EXPECT_NE(text.find(damaged.tensor + " " + where), std::string::npos) << text;
  }
}

TEST(Divergence, DdpNamesTensorAndRank) {
  Training const training{
      .model = "tiny_residual", .strategy = DdpConfig{.bucket_mb = kib}, .steps = 12};
  for (auto const* tensor :
       {"parameters/head.weight", "parameters/stem.conv.weight", "momentum/block1.norm1.bias"})
    for (int const rank : {1, 2})
      expect_found({training, tensor, rank}, "on rank " + std::to_string(rank), 4);
  expect_found({training, "parameters/head.bias", 1, 4}, "on rank 1", 4);
  expect_found({training, "parameters/head.bias", 1, 5}, "on rank 1", 8);
}

/// What is gathered lasts for one step.
TEST(Divergence, Zero2NamesWhatWasGathered) {
  Training const training{.model = "tiny_residual",
                          .strategy = FsdpConfig{.shard = Shard::gradients, .unit_mb = kib},
                          .steps = 6};
  expect_found({training, "parameters/block1.conv2.weight", 1, 3, 1}, "on rank 1", 3);
}

TEST(Divergence, WorkersOfASynchronousServerAreCompared) {
  Training const training{.model = "tiny_residual",
                          .strategy = PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::sync},
                          .steps = 6};
  expect_found({training, "parameters/head.weight", 1, 3, 1}, "between ranks 0, 1", 3);
}

TEST(Divergence, NothingIsFoundWhereNothingIsLookedFor) {
  Training const training{.model = "tiny_residual", .strategy = DdpConfig{}, .steps = 6};
  for (auto const& end : ends_of({training, "parameters/head.weight", 1, 3, 0}))
    EXPECT_FALSE(end.has_value());
}

TEST(Divergence, EqualReplicasAreNoNews) {
  for (auto const& strategy :
       {StrategyConfig(DdpConfig{}), StrategyConfig(FsdpConfig{.shard = Shard::optimizer}),
        StrategyConfig(FsdpConfig{}), StrategyConfig(PsConfig{})}) {
    Training const training{.model = "tiny_odd", .strategy = strategy, .steps = 5};
    for (auto const& end : ends_of({training, "", 0, 0, 1}))
      EXPECT_FALSE(end.has_value()) << name_of(strategy) << ": " << end->what();
  }
}

/// What the first rank to end says of a gradient that is not finite though the losses are.
void expect_bad_gradient(StrategyConfig const& strategy, std::string const& whose) {
  Training const training{.model = "tiny_cliff", .strategy = strategy, .steps = 6};
  try {
    run_ranks(ranks, 1, [&](Communicator& communicator) {
      static_cast<void>(train(training, communicator));
    });
    FAIL() << "nobody noticed: " << name_of(strategy);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::non_finite) << error.what();
    std::string const text = error.what();
    for (auto const& word : {"at step 2", whose.c_str(), "cliff.weight"})
      EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

TEST(Divergence, AGradientThatIsNotFiniteEndsTheRunInACodeToo) {
  for (Compression const& code :
       {Compression{.code = Code::int8}, Compression{.code = Code::top_k},
        Compression{.code = Code::top_k, .error_feedback = true, .momentum_correction = true},
        Compression{.code = Code::low_rank, .error_feedback = true}})
    expect_bad_gradient(DdpConfig{.compression = code}, "summed over all ranks");
}

TEST(Divergence, AGradientThatIsNotFiniteEndsTheRun) {
  expect_bad_gradient(DdpConfig{}, "summed over all ranks");
  expect_bad_gradient(DdpConfig{.bucket_mb = kib, .overlap = false}, "summed over all ranks");
  expect_bad_gradient(FsdpConfig{}, "in the shard of rank");
  expect_bad_gradient(FsdpConfig{.shard = Shard::optimizer}, "in the shard of rank");
  expect_bad_gradient(PsConfig{.mode = PsMode::sync}, "of the worker on rank 1");
  expect_bad_gradient(PsConfig{.mode = PsMode::async}, "of the worker on rank 1");
}

}  // namespace
}  // namespace stratagem::test
