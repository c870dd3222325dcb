#include "strategy/fsdp/fsdp_plan.hpp"

#include <functional>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/model.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

Model const& vgg16() {
  static Model const model = make_model({.name = "vgg16"}, {});
  return model;
}

/// With units of 4 MiB where `config` does not say.
FsdpPlan plan_of(FsdpConfig config, int ranks, Precision precision = Precision::fp32) {
  if (config.unit_mb == 0) config.unit_mb = 4;
  return plan_fsdp(config, make_layout(vgg16()), {}, precision, ranks, 0);
}

Error error_of(std::function<void()> const& action) {
  try {
    action();
  } catch (Error const& error) {
    return error;
  }
  return {ExitCode::done, "no error"};
}

/// 12 bytes of every parameter are divided among the ranks; slots and padding are what is added.
TEST(FsdpPlan, FullShardsHoldTwelveBytesOfEachOwnedParameter) {
  auto const layout = make_layout(vgg16());
  for (int const ranks : {2, 3, 4, 16, 1024}) {
    auto const plan = plan_of({}, ranks);
    auto const memory = plan.memory();
    auto const slots = plan.parameter_slots * plan.parameter_slot_bytes() +
                       plan.gradient_slots * plan.gradient_slot_bytes();
    auto const status = ParameterLayout::alignment * 4;
    EXPECT_EQ(memory.total(), 12 * plan.shards.owned + slots + status);
    EXPECT_GE(plan.shards.owned * ranks, layout.size());
    // Two rows of alignment per unit and rank at most.
    EXPECT_LE(plan.shards.owned,
              layout.size() / ranks + plan.units() * 2 * ParameterLayout::alignment);
  }
}

/// The layer that is most of the model does not decide the size of slots.
TEST(FsdpPlan, SlotsAreThoseOfPartsOfALayer) {
  auto const plan = plan_of({}, 4);
  EXPECT_LE(plan.parameter_slot_bytes(), 65 * mib);  // the next layer, not the first's 411
  EXPECT_LT(plan.memory().total(), std::int64_t{1'611'618'168} / 2) << "half of what DDP holds";
}

/// LeNet has 3.6 MiB of parameters: units of 4 MiB would be the whole model.
TEST(FsdpPlan, AutomaticUnitsHoldHardlyMoreThanAnyOthers) {
  auto const lenet = make_model({.name = "lenet"}, {.channels = 1, .size = 28});
  for (auto const* model : {&lenet, &vgg16()}) {
    auto const layout = make_layout(*model);
    for (int const ranks : {2, 4})
      for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full}) {
        auto const held = [&](double unit_mb) {
          FsdpConfig const config{.shard = shard, .unit_mb = unit_mb};
          return static_cast<double>(
              plan_fsdp(config, layout, {}, Precision::fp32, ranks, 0).memory().total());
        };
        auto const chosen = held(0), ddp = 12.0 * static_cast<double>(layout.size());
        for (double const unit_mb : {4.0, 1.0, 0.25, 0.0625})
          EXPECT_LE(chosen, 1.05 * held(unit_mb)) << model->name << ' ' << unit_mb;
        if (ranks == 4) {
          EXPECT_LT(chosen, ddp) << model->name;
        }
      }
  }
}

TEST(FsdpPlan, AutomaticUnitsAreTheLargestThatABudgetHasRoomFor) {
  FsdpConfig config{.memory_budget = "1GiB"};
  auto const automatic = [&] {
    return plan_fsdp(config, make_layout(vgg16()), {}, Precision::fp32, 4, 0);
  };
  EXPECT_EQ(automatic().hash(), plan_of(config, 4).hash());
  config = {.memory_budget = "1MiB"};
  EXPECT_EQ(error_of([&] { automatic(); }).code(), ExitCode::does_not_fit);
}

TEST(FsdpPlan, OfASmallModelABudgetMayNeedUnitsThatStay) {
  auto const model = make_model({.name = "lenet"}, {.channels = 1, .size = 28});
  auto const of_budget = [&](std::int64_t bytes) {
    return plan_fsdp({.memory_budget = std::to_string(bytes)}, make_layout(model), {},
                     Precision::fp32, 2, 0);
  };
  std::string const told = error_of([&] { of_budget(1); }).what();
  std::smatch least;
  ASSERT_TRUE(std::regex_search(told, least, std::regex("at least ([0-9,]+) bytes"))) << told;
  auto digits = least[1].str();
  std::erase(digits, ',');
  auto const bytes = std::stoll(digits);
  EXPECT_LE(of_budget(bytes).memory().total(), bytes) << "what is named is enough";
  EXPECT_EQ(error_of([&] { of_budget(bytes - 1); }).code(), ExitCode::does_not_fit);
}

TEST(FsdpPlan, LevelsOfShardingHoldLessAndLess) {
  std::int64_t before = 1'700'000'000;
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full}) {
    auto const total = plan_of({.shard = shard}, 4).memory().total();
    EXPECT_LT(total, before);
    before = total;
  }
}

TEST(FsdpPlan, AloneHoldsWhatDdpHolds) {
  auto const layout = make_layout(vgg16());
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full}) {
    auto const plan = plan_of({.shard = shard}, 1);
    EXPECT_EQ(plan.memory().total(), 12 * layout.size() + 4 * ParameterLayout::alignment);
    EXPECT_EQ(plan.gathered_bytes_sent() + plan.reduced_bytes_sent(), 0);
  }
}

/// (N-1)/N of two all-gathers, but for the units that stay in their slots where the passes meet,
/// and of one reduce-scatter.
TEST(FsdpPlan, FullShardingGathersTwiceAndReducesOnce) {
  for (int const ranks : {2, 4}) {
    auto const plan = plan_of({.prefetch = 0}, ranks);
    auto const all = plan.shards.elements() * 4;
    auto const last = plan.parameter_bytes(plan.units() - 1);
    EXPECT_EQ(plan.gathered_bytes_sent(), (2 * all - last) / ranks * (ranks - 1));
    EXPECT_EQ(plan.reduced_bytes_sent(), all / ranks * (ranks - 1));
    for (auto const shard : {Shard::optimizer, Shard::gradients}) {
      auto const once = plan_of({.shard = shard}, ranks);
      EXPECT_EQ(once.gathered_bytes_sent(), all / ranks * (ranks - 1));
      EXPECT_EQ(once.reduced_bytes_sent(), all / ranks * (ranks - 1));
    }
  }
}

TEST(FsdpPlan, SixteenBitParametersHalveWhatIsGathered) {
  auto const wide = plan_of({}, 4), narrow = plan_of({}, 4, Precision::bf16);
  EXPECT_EQ(narrow.gathered_bytes_sent() * 2, wide.gathered_bytes_sent());
  EXPECT_EQ(narrow.reduced_bytes_sent(), wide.reduced_bytes_sent());
  auto const reduced = plan_of({.reduce = ReduceType::compute}, 4, Precision::bf16);
  EXPECT_EQ(reduced.reduced_bytes_sent() * 2, wide.reduced_bytes_sent());
}

TEST(FsdpPlan, ABudgetDecidesPrefetchAndWhatIsKept) {
  auto const least = plan_of({}, 4).memory().total();
  auto const most = plan_of({.keep_units = plan_of({}, 4).units()}, 4).memory().total();
  int kept = -1;
  for (auto budget = least; budget < most + 64 * mib; budget += 64 * mib) {
    auto const plan = plan_of({.memory_budget = std::to_string(budget)}, 4);
    EXPECT_LE(plan.memory().total(), budget);
    EXPECT_GE(plan.units() - plan.rotating, kept) << "more memory keeps no fewer units";
    kept = plan.units() - plan.rotating;
  }
  EXPECT_EQ(kept, plan_of({}, 4).units()) << "and in the end all";
  auto const tight = plan_of({.prefetch = 3, .memory_budget = std::to_string(least)}, 4);
  EXPECT_EQ(tight.prefetch, 1) << "as deep as fits";
}

TEST(FsdpPlan, ABudgetTooSmallForTwoSlotsNamesTheSmallest) {
  auto const least = plan_of({}, 4).memory().total();
  auto const error = error_of([&] { plan_of({.memory_budget = std::to_string(least - 1)}, 4); });
  EXPECT_EQ(error.code(), ExitCode::does_not_fit);
  EXPECT_NO_THROW(plan_of({.memory_budget = std::to_string(least)}, 4));
}

TEST(FsdpPlan, RefusesWhatTheModelCannotGive) {
  auto const units = plan_of({}, 2).units();
  EXPECT_NO_THROW(plan_of({.prefetch = units}, 2));
  EXPECT_EQ(error_of([&] { plan_of({.prefetch = units + 1}, 2); }).code(), ExitCode::usage);
  EXPECT_EQ(error_of([&] { plan_of({.keep_units = units + 1}, 2); }).code(), ExitCode::usage);
  EXPECT_EQ(error_of([&] { plan_of({.memory_budget = "much"}, 2); }).code(), ExitCode::usage);
  EXPECT_EQ(error_of([&] {
              plan_of({.shard = Shard::optimizer, .reduce = ReduceType::compute}, 2);
            }).code(),
            ExitCode::usage);
}

TEST(FsdpPlan, TheHashTellsOptionsApart) {
  EXPECT_EQ(plan_of({}, 2).hash(), plan_of({}, 2).hash());
  for (auto const& other :
       {FsdpConfig{.prefetch = 2}, FsdpConfig{.shard = Shard::gradients}, FsdpConfig{.unit_mb = 8},
        FsdpConfig{.keep_units = 1}, FsdpConfig{.micro_batches = 2}})
    EXPECT_NE(plan_of(other, 2).hash(), plan_of({}, 2).hash());
}

/// 16 bytes of every parameter under AdamW are divided; the embedding, which the head uses too, has
/// memory for its values and its gradients instead of slots.
TEST(FsdpPlan, TiedEmbeddingsHaveMemoryOfTheirOwn) {
  auto const gpt2 = make_model({.name = "gpt2", .num_classes = 0}, usual_input(find_model("gpt2")));
  auto const layout = make_layout(gpt2);
  OptimizerConfig const adamw{.rule = AdamwConfig{}};
  for (int const ranks : {2, 4, 64}) {
    auto const plan = plan_fsdp({.unit_mb = 4}, layout, adamw, Precision::fp32, ranks, 0);
    EXPECT_EQ(plan.lenders, 1);
    EXPECT_FALSE(plan.rotates(0));
    EXPECT_TRUE(plan.stays_after_forward(0));
    EXPECT_FALSE(plan.stays_after_backward(0, true));
    auto const embedding = plan.parameter_bytes(0);
    EXPECT_NEAR(static_cast<double>(embedding), 4.0 * 768 * (50257 + 1024), 4.0 * 32 * ranks);
    auto const slots = plan.parameter_slots * plan.parameter_slot_bytes() +
                       plan.gradient_slots * plan.gradient_slot_bytes();
    auto const status = ParameterLayout::alignment * 4;
    // Its shard of the parameters lies in its memory.
    auto const shard = embedding / ranks;
    EXPECT_EQ(plan.memory().total(),
              16 * plan.shards.owned - shard + 2 * embedding + slots + status);
    EXPECT_LT(plan.parameter_slot_bytes(), 24 * mib) << "slots are those of layers";
  }
  auto const untied =
      make_model({.name = "gpt2", .num_classes = 0, .tie = false}, usual_input(find_model("gpt2")));
  EXPECT_EQ(plan_fsdp({.unit_mb = 4}, make_layout(untied), adamw, Precision::fp32, 2, 0).lenders,
            0);
}

TEST(FsdpPlan, ReplicasAreEquallyManyRanksWithoutCodes) {
  auto const refused = [](FsdpConfig const& config, int ranks, char const* words) {
    auto const error = error_of([&] { plan_of(config, ranks); });
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  };
  refused({.replicas = 3}, 4, "strategy.replicas: 3 replicas on 4 ranks");
  refused({.replicas = 3}, 4, "take one of 1, 2, 4");
  refused({.replicas = 8}, 4, "8 replicas on 4 ranks");
  refused({.replicas = 2, .compression = {Code::int8}}, 4, "together with strategy.compression");
  refused({.replicas = 2, .parameter_compression = Code::int8}, 4,
          "together with strategy.parameter_compression");
}

TEST(FsdpPlan, ARankOfAReplicaHoldsWhatItWouldAlone) {
  auto const alone = plan_of({}, 2), replicas = plan_of({.replicas = 3}, 6);
  EXPECT_EQ(replicas.memory().bytes, alone.memory().bytes);
  EXPECT_EQ(replicas.gathered_bytes_sent(), alone.gathered_bytes_sent());
  EXPECT_EQ(alone.replicated_bytes_sent(), 0);
  EXPECT_EQ(replicas.shard_group(3), (std::vector<int>{2, 3}));
  EXPECT_EQ(replicas.replica_group(3), (std::vector<int>{1, 3, 5}));
}

}  // namespace
}  // namespace stratagem
