#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "conformance/expected.hpp"
#include "strategy/registry.hpp"

namespace stratagem::test {
namespace {

using enum Replicas;

constexpr double kib = 1.0 / 1024;

/// The emulator's result, once per kind of training.
std::string const& expected(Training const& training, SerialConfig const& serial = {}) {
  static std::map<std::string, std::string> known;
  std::string optimizer;
  auto config = training.optimizer;
  for (auto const& each : keys_of(config)) optimizer += each.value.get() + " ";
  auto const key = training.model + std::to_string(serial.micro_batches) +
                   std::to_string(static_cast<int>(serial.accumulate)) + "/" +
                   std::to_string(serial.groups) + optimizer +
                   std::to_string(static_cast<int>(training.precision.compute));
  auto& result = known[key];
  if (result.empty() && world().rank() == 0) result = emulated(training, world().size(), serial);
  return result;
}

FsdpConfig with(FsdpConfig config, std::string const& model) {
  config.unit_mb = model == "lenet" ? 4 * kib : kib;
  config.poison = true;
  return config;
}

struct Case {
  std::string model;
  FsdpConfig fsdp;
};

std::string name(testing::TestParamInfo<Case> const& info) {
  auto const& [model, fsdp] = info.param;
  char const* const shard[]{"optimizer", "gradients", "full"};
  return model + "_" + shard[static_cast<int>(fsdp.shard)] + "_prefetch" +
         std::to_string(fsdp.prefetch) + (fsdp.reshard_after_forward ? "" : "_kept") +
         (fsdp.overlap ? "" : "_inturn");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"})
    for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
      for (int const prefetch : {0, 1, 2})
        for (bool const reshard : {true, false})
          for (bool const overlap : {true, false})
            if (shard == Shard::full || reshard)
              cases.push_back({model,
                               {.shard = shard,
                                .reshard_after_forward = reshard,
                                .prefetch = prefetch,
                                .overlap = overlap}});
  for (auto const* model : {"tiny_exported", "tiny_maps", "tiny_maps_not_fused"})
    for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
      cases.push_back({model, {.shard = shard}});
  return cases;
}

class Fsdp : public testing::TestWithParam<Case> {};

TEST_P(Fsdp, EqualsTheEmulatorBitForBit) {
  auto const& [model, fsdp] = GetParam();
  Training const training{.model = model, .strategy = with(fsdp, model)};
  expect_result(training, expected(training), on_rank_0);
}

INSTANTIATE_TEST_SUITE_P(All, Fsdp, testing::ValuesIn(all_cases()), name);

constexpr Shard every_shard[]{Shard::optimizer, Shard::gradients, Shard::full};

TEST(Fsdp, UnitsOfEverySizeAndKeptOnesGiveTheSame) {
  for (double const unit_mb : {kib, 8 * kib, 25.0})
    for (int const keep : {0, 1}) {
      Training const training{
          .model = "tiny_residual",
          .strategy = FsdpConfig{.unit_mb = unit_mb, .keep_units = keep, .poison = true}};
      expect_result(training, expected(training), on_rank_0);
    }
}

TEST(Fsdp, AccumulatesUnshardedAsDdpDoes) {
  SerialConfig const serial{.micro_batches = 2};
  for (auto const shard : every_shard) {
    Training const training{
        .model = "tiny_residual",
        .strategy = with({.shard = shard, .accumulate = Accumulate::unsharded, .micro_batches = 2},
                         "tiny_residual")};
    expect_result(training, expected(training, serial), on_rank_0);
  }
}

TEST(Fsdp, AccumulatesShardedAsTheEmulatorInThatOrder) {
  SerialConfig const serial{.micro_batches = 2, .accumulate = Accumulate::sharded};
  for (auto const shard : {Shard::gradients, Shard::full})
    for (int const prefetch : {0, 1, 2}) {
      Training const training{
          .model = "tiny_residual",
          .strategy =
              with({.shard = shard, .prefetch = prefetch, .micro_batches = 2}, "tiny_residual")};
      expect_result(training, expected(training, serial), on_rank_0);
    }
}

/// Those of the ranks of the test.
std::vector<int> numbers_of_replicas() {
  std::vector<int> divisors;
  for (int replicas = 2; replicas <= world().size(); ++replicas)
    if (world().size() % replicas == 0) divisors.push_back(replicas);
  return divisors;
}

TEST(Fsdp, ReplicasEqualTheEmulatorInGroups) {
  for (int const replicas : numbers_of_replicas())
    for (auto const* model : {"tiny_residual", "tiny_odd"})
      for (auto const shard : every_shard)
        for (bool const overlap : {true, false}) {
          Training const training{
              .model = model,
              .strategy = with({.shard = shard, .replicas = replicas, .overlap = overlap}, model)};
          expect_result(training, expected(training, {.groups = replicas}), on_rank_0);
        }
}

TEST(Fsdp, ReplicasAccumulateClipAndRoundAsTheEmulatorInGroups) {
  for (int const replicas : numbers_of_replicas())
    for (auto const shard : every_shard)
      for (auto const accumulate : {Accumulate::sharded, Accumulate::unsharded})
        for (auto optimizer :
             {OptimizerConfig{.rule = SgdConfig{.nesterov = true}, .clip_norm = 0.5},
              OptimizerConfig{.lr = 0.002, .rule = AdamwConfig{}}})
          for (auto const compute : {Precision::fp32, Precision::bf16}) {
            auto const as = shard == Shard::optimizer ? Accumulate::unsharded : accumulate;
            Training const training{.model = "tiny_residual",
                                    .strategy = with({.shard = shard,
                                                      .replicas = replicas,
                                                      .accumulate = accumulate,
                                                      .micro_batches = 2},
                                                     "tiny_residual"),
                                    .optimizer = optimizer,
                                    .precision = {.compute = compute}};
            expect_result(
                training,
                expected(training, {.groups = replicas, .micro_batches = 2, .accumulate = as}),
                on_rank_0);
          }
}

TEST(Fsdp, TheOrderOfAdditionsIsNotTheSame) {
  Training const training{.model = "tiny_residual"};
  auto const unsharded = expected(training, {.micro_batches = 2});
  auto const sharded = expected(training, {.micro_batches = 2, .accumulate = Accumulate::sharded});
  if (world().rank() == 0) {
    EXPECT_EQ(unsharded == sharded, world().size() == 1);
  }
}

TEST(Fsdp, EqualsTheEmulatorWithClippingAndNesterov) {
  for (auto const shard : every_shard) {
    Training const training{.model = "tiny_residual",
                            .strategy = with({.shard = shard}, "tiny_residual"),
                            .optimizer = {.lr = 0.02,
                                          .weight_decay = 1e-3,
                                          .rule = SgdConfig{.nesterov = true},
                                          .clip_norm = 0.5}};
    expect_result(training, expected(training), on_rank_0);
  }
}

TEST(Fsdp, EqualsTheEmulatorUnderEveryOptimizer) {
  for (auto optimizer : all_optimizers())
    for (auto const shard : every_shard) {
      optimizer.weight_decay = 0.1;
      optimizer.decay = Decay::weights;
      Training const training{.model = "tiny_residual",
                              .strategy = with({.shard = shard}, "tiny_residual"),
                              .optimizer = optimizer};
      expect_result(training, expected(training), on_rank_0);
    }
}

TEST(Fsdp, EqualsTheEmulatorWithRecomputation) {
  for (auto const shard : every_shard) {
    Training const training{.model = "tiny_residual",
                            .strategy = with({.shard = shard}, "tiny_residual"),
                            .recompute = {.every = 1}};
    expect_result(training, expected(training), on_rank_0);
  }
}

TEST(Fsdp, EqualsTheEmulatorInBf16WithLossScaling) {
  for (auto const shard : every_shard) {
    Training const training{
        .model = "tiny_residual",
        .strategy = with({.shard = shard}, "tiny_residual"),
        .precision = {.compute = Precision::bf16, .loss_scale = LossScale::dynamic}};
    expect_result(training, expected(training), on_rank_0);
  }
}

/// What one strategy gathers another one takes up, and gives back as it was.
TEST(Fsdp, WeightsMoveBetweenStrategies) {
  auto const all = make_world({}, discover_process(world()), world(), nullptr);
  for (auto const* name : {"tiny_residual", "tiny_odd"}) {
    Training training{.model = name, .strategy = DdpConfig{}, .steps = 3};
    auto const trained = train(training, *all);
    std::map<std::string, at::Tensor> weights(trained.parameters.begin(), trained.parameters.end());
    weights.insert(trained.buffers.begin(), trained.buffers.end());
    auto const model = test_model(name);
    trace::Recorder recorder({}, 0);
    for (auto const shard : every_shard)
      for (auto const compute : {Precision::fp32, Precision::bf16}) {
        auto const member =
            make_member(with({.shard = shard}, name), {.model = model,
                                                       .world = *all,
                                                       .recorder = recorder,
                                                       .device = {},
                                                       .optimizer = {},
                                                       .precision = {.compute = compute},
                                                       .seed = 99});
        auto const state = member.strategy->state();
        load_weights(state, model, weights);
        member.strategy->state_replaced();
        auto const gathered = gather(state, State::parameters, model, all_tensors, all->all());
        auto const momentum = gather(state, "momentum", model, all_tensors, all->all());
        if (world().rank() != 0) continue;
        ASSERT_EQ(gathered.size(), trained.parameters.size());
        for (std::size_t i = 0; i < gathered.size(); ++i) {
          EXPECT_EQ(gathered[i].first, trained.parameters[i].first);
          EXPECT_TRUE(gathered[i].second.equal(trained.parameters[i].second)) << gathered[i].first;
          EXPECT_EQ(momentum[i].second.count_nonzero().item<std::int64_t>(), 0);
        }
      }
  }
}

/// Sums in 16 bit are others, but the same however units are gathered.
TEST(Fsdp, ReducesInTheComputeTypeTheSameUnderEveryPlan) {
  std::vector<std::string> results;
  for (auto const shard : {Shard::gradients, Shard::full})
    for (int const prefetch : {0, 2}) {
      Training const training{
          .model = "tiny_residual",
          .strategy = with({.shard = shard, .prefetch = prefetch, .reduce = ReduceType::compute},
                           "tiny_residual"),
          .precision = {.compute = Precision::bf16, .loss_scale = LossScale::none}};
      auto const all = make_world({}, discover_process(world()), world(), nullptr);
      results.push_back(fingerprint(train(training, *all)));
      EXPECT_EQ(results.back(), results.front());
    }
}

/// Whoever uses memory before its communication is done meets NaN or the unit before.
TEST(Fsdp, LateCommunicationChangesNothing) {
  for (auto const shard : every_shard)
    for (int const prefetch : {1, 2}) {
      Training const training{
          .model = "tiny_residual",
          .strategy =
              with({.shard = shard, .prefetch = prefetch, .micro_batches = 1}, "tiny_residual")};
      expect_result(training, expected(training), on_rank_0, {.delay_us = 2000});
    }
}

}  // namespace
}  // namespace stratagem::test
