#include "train/plan_comparison.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace stratagem {
namespace {

RunConfig lenet_on_digits() {
  RunConfig config;
  config.data = {.dataset = "synthetic-digits", .global_batch = 12};
  config.model = {.name = "lenet"};
  return config;
}

std::vector<ComparedPlan> compare(RunConfig const& config, int workers) {
  auto const model = make_model(config.model, input_shape(config));
  return compare_strategies(config, model, workers, nullptr);
}

ComparedPlan const& named(std::vector<ComparedPlan> const& compared, std::string const& name) {
  auto const found = std::ranges::find(compared, name, &ComparedPlan::name);
  EXPECT_NE(found, compared.end()) << name;
  return *found;
}

TEST(PlanComparison, HasEveryStrategyWithTheSameWorkers) {
  auto const compared = compare(lenet_on_digits(), 3);
  std::vector<std::string> names;
  for (auto const& one : compared) {
    names.push_back(one.name);
    ASSERT_TRUE(one.plan) << one.problem;
    EXPECT_EQ(one.plan->strategy.workers, 3) << one.name;
    EXPECT_EQ(one.plan->ranks, one.name.starts_with("ps") ? 4 : 3);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"ddp", "fsdp, shard optimizer", "fsdp, shard gradients",
                                      "fsdp, shard full", "ps, mode sync", "ps, mode async"}));
}

TEST(PlanComparison, AServerSendsToAllWorkers) {
  auto const compared = compare(lenet_on_digits(), 4);
  auto const& ps = named(compared, "ps, mode sync");
  EXPECT_EQ(ps.busiest_bytes(), 4 * ps.plan->strategy.bytes_sent_per_step);
  auto config = lenet_on_digits();
  config.strategy = PsConfig{.servers = 2, .chunk_mb = 0.25};
  auto const two = compare(config, 4);
  EXPECT_LT(named(two, "ps, mode sync").busiest_bytes(), ps.busiest_bytes());
}

TEST(PlanComparison, KeepsWhatTheConfigurationSaysOfAStrategy) {
  auto config = lenet_on_digits();
  config.strategy = DdpConfig{.micro_batches = 2};
  auto const compared = compare(config, 2);
  EXPECT_EQ(compared.front().plan->samples_per_pass, 3);
  EXPECT_EQ(named(compared, "fsdp, shard full").plan->samples_per_pass, 6);
}

TEST(PlanComparison, RecommendsTheSimplestUntilMemoryIsShort) {
  auto const compared = compare(lenet_on_digits(), 4);
  ASSERT_EQ(recommended(compared, 0), &compared.front());
  EXPECT_EQ(recommended(compared, compared.front().plan->largest_bytes()), &compared.front());
  auto const* sharded = recommended(compared, compared.front().plan->largest_bytes() - 1);
  ASSERT_NE(sharded, nullptr);
  EXPECT_LT(sharded->plan->largest_bytes(), compared.front().plan->largest_bytes());
  EXPECT_EQ(recommended(compared, 1), nullptr);
  EXPECT_NE(comparison_text(compared, 1).find("none of them fits"), std::string::npos);
  auto const document = nlohmann::json::parse(comparison_json(compared, 1));
  EXPECT_TRUE(document.at("recommended").is_null());
  for (auto const& entry : document.at("strategies")) EXPECT_FALSE(entry.at("fits")) << entry;
}

TEST(PlanComparison, RecommendsTheFastestWhereTimesAreKnown) {
  auto compared = compare(lenet_on_digits(), 4);
  double step_s = 1;
  for (auto& one : compared) one.plan->time = PredictedTime{.step = {.compute_s = step_s *= 0.97}};
  // 0.97, 0.94, 0.91, 0.89, 0.86 and, under async, 0.83.
  auto const* best = recommended(compared, 0);
  EXPECT_EQ(best, &named(compared, "fsdp, shard full"))
      << "the simplest within 5 % of the shortest";
  auto const text = comparison_text(compared, 0);
  for (auto const* words : {"take fsdp, shard full: its step is predicted to take",
                            "within 5 % of the shortest (ps, mode sync)",
                            "ps, mode async would take", "but trains otherwise"})
    EXPECT_NE(text.find(words), std::string::npos) << text;
  auto const document = nlohmann::json::parse(comparison_json(compared, 0));
  EXPECT_DOUBLE_EQ(document.at("strategies")[0].at("time").at("step_s"), 0.97);

  compared[1].plan->time.reset();
  compared[1].plan->time_problem = "was not measured";
  EXPECT_EQ(recommended(compared, 0), &compared.front()) << "by bytes, as not all are known";
  EXPECT_NE(comparison_text(compared, 0).find("was not measured"), std::string::npos);
}

TEST(PlanComparison, NamesStrategiesThatCannotDoTheRun) {
  auto config = lenet_on_digits();
  config.strategy = PsConfig{.servers = 100};
  auto const compared = compare(config, 2);
  auto const& ps = named(compared, "ps, mode async");
  EXPECT_FALSE(ps.plan);
  EXPECT_NE(ps.problem.find("servers"), std::string::npos) << ps.problem;
  EXPECT_NE(comparison_text(compared, 0).find(ps.problem), std::string::npos);
  EXPECT_EQ(recommended(compared, 0), &compared.front());
}

}  // namespace
}  // namespace stratagem
