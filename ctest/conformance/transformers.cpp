#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "conformance/expected.hpp"
#include "strategy/registry.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;

/// AdamW as transformers are trained: gradients are clipped, the learning rate rises and falls.
OptimizerConfig recipe() {
  return {.lr = 3e-3,
          .weight_decay = 0.1,
          .decay = Decay::weights,
          .rule = AdamwConfig{.beta2 = 0.95},
          .clip_norm = 0.5,
          .schedule = ScheduleKind::cosine,
          .warmup_steps = 5,
          .final_lr = 3e-4};
}

/// The emulator's result; empty on other ranks than the first.
std::string expected(Training const& training, int workers, SerialConfig const& serial = {}) {
  if (world().rank() != 0) return {};
  return emulated(training, workers, serial);
}

void expect_everywhere(Training const& training, std::string const& wanted,
                       Replicas replicas = Replicas::everywhere) {
  auto text = wanted;
  world().broadcast(text, 0);
  expect_result(training, text, replicas);
}

/// 20 updates were made, as the optimizer of this rank counts them.
void expect_updates(Participant& participant, Communicator& /*all*/) {
  EXPECT_EQ(*participant.state().counters.at("optimizer_updates"), 20);
}

class Transformers : public testing::TestWithParam<char const*> {
 protected:
  Training training() const {
    return {.model = GetParam(), .optimizer = recipe(), .after = expect_updates};
  }
};

TEST_P(Transformers, DdpEqualsTheEmulator) {
  auto training = this->training();
  auto const wanted = expected(training, world().size());
  for (double const bucket : {25.0, kib}) {
    training.strategy = DdpConfig{.bucket_mb = bucket};
    expect_everywhere(training, wanted);
  }
  training.recompute = {.every = 2};
  expect_everywhere(training, wanted);
}

TEST_P(Transformers, EveryZeroStageEqualsTheEmulator) {
  auto training = this->training();
  auto const wanted = expected(training, world().size());
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (int const prefetch : {0, 1, 2})
      for (bool const reshard : {true, false}) {
        SCOPED_TRACE(prefetch);
        training.strategy = FsdpConfig{.shard = shard,
                                       .unit_mb = kib,
                                       .reshard_after_forward = reshard,
                                       .prefetch = prefetch,
                                       .poison = true};
        expect_everywhere(training, wanted, Replicas::on_rank_0);
      }
}

TEST_P(Transformers, MicroBatchesAddUpTheSame) {
  auto training = this->training();
  for (auto const accumulate : {Accumulate::sharded, Accumulate::unsharded}) {
    auto const wanted =
        expected(training, world().size(), {.micro_batches = 2, .accumulate = accumulate});
    for (int const kept : {0, 2}) {
      training.strategy = FsdpConfig{.unit_mb = kib,
                                     .keep_units = kept,
                                     .accumulate = accumulate,
                                     .micro_batches = 2,
                                     .poison = true};
      expect_everywhere(training, wanted, Replicas::on_rank_0);
    }
  }
}

/// Sums in 16 bit have their own emulator: what is compared is one rank's result with another's.
TEST_P(Transformers, Bf16EqualsTheEmulator) {
  auto training = this->training();
  training.precision = {.compute = Precision::bf16, .loss_scale = LossScale::none};
  auto const wanted = expected(training, world().size());
  training.strategy = FsdpConfig{.unit_mb = kib, .poison = true};
  expect_everywhere(training, wanted, Replicas::on_rank_0);
  training.strategy = DdpConfig{.bucket_mb = kib};
  expect_everywhere(training, wanted);
}

TEST_P(Transformers, SynchronousServersEqualTheEmulator) {
  if (world().size() < 2) return;  // a server and a worker
  auto training = this->training();
  training.after = nullptr;  // the server counts
  training.strategy = PsConfig{.servers = 1, .chunk_mb = 4 * kib};
  auto const own = train_here(training);
  if (world().rank() == 0) {
    EXPECT_EQ(fingerprint(own), emulated(training, world().size() - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Transformers, testing::Values("tiny_gpt", "tiny_vit", "tiny_experts"),
                         [](auto const& info) { return std::string(info.param); });

}  // namespace
}  // namespace stratagem::test
