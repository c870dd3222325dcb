#include "predict/code_comparison.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "predict/link.hpp"
#include "predict/time/step_costs.hpp"
#include "predict/time/step_time.hpp"

namespace stratagem {
namespace {

/// LeNet on two ranks, and a machine that codes every byte in as many nanoseconds.
class CodeComparison : public testing::Test {
 protected:
  CodeComparison() {
    config_.run.threads = 1;
    config_.data = {.dataset = "synthetic-digits", .global_batch = 12, .subset = 120};
    config_.model = {.name = "lenet"};
    model_ = make_model(config_.model, input_shape(config_));
    calibration_.passes = {
        {pass_kind(config_, model_, 1), 2, Curve({{6, 0.02}}), Curve({{6, 0.04}}), 0.001}};
    for (auto const* operation : {"all_reduce", "reduce_scatter", "all_gather", "send_receive"})
      calibration_.operations.push_back({operation, "mpi", 2, 2, Curve({{1e3, 1e-5}, {1e9, 0.1}})});
    calibration_.codings = {{2, {}}};
    for (std::size_t i = 1; i < code_names.size(); ++i)
      calibration_.codings.front().codecs.push_back(
          {static_cast<Code>(i), Rounding::nearest, {1e-9, 0.5e-9, 0.5e-9}});
    calibration_.cores = 2;
  }

  RunPlan plan(StrategyConfig const& strategy, int ranks = 2) {
    config_.strategy = strategy;
    return make_run_plan(config_, model_, known_size(config_.data), ranks);
  }
  std::vector<ComparedCode> compared(StrategyConfig const& strategy, int ranks = 2) {
    return compare_codes(plan(strategy, ranks), model_, calibration_);
  }
  double seconds(StrategyConfig const& strategy, double bandwidth) {
    auto const of = plan(strategy);
    auto const costs = step_costs(of, model_, calibration_);
    return predict_step(of, model_, over_link(costs, {bandwidth}, 2)).total();
  }

  RunConfig config_;
  Model model_;
  Calibration calibration_;
};

TEST_F(CodeComparison, HasEveryCodeBesideFp32) {
  auto const codes = compared(DdpConfig{});
  ASSERT_EQ(codes.size(), code_names.size());
  auto const& none = codes.front();
  EXPECT_FALSE(none.compression.on());
  for (std::size_t i = 1; i < codes.size(); ++i) {
    auto const& one = codes[i];
    SCOPED_TRACE(name_of(one.compression.code));
    EXPECT_EQ(one.compression.code, static_cast<Code>(i));
    EXPECT_TRUE(one.compression.error_feedback);
    auto const coded = plan(DdpConfig{.compression = one.compression});
    EXPECT_EQ(one.bytes_sent, coded.strategy.traffic.bytes_sent);
    EXPECT_EQ(one.held, coded.strategy.memory.total());
    EXPECT_LT(one.bytes_sent, none.bytes_sent);
    EXPECT_GT(one.held, none.held);
    EXPECT_GT(one.step.compute_s, none.step.compute_s);
  }
}

TEST_F(CodeComparison, HasCodesThatTheStrategyTakesAndTheCalibrationKnows) {
  auto const codes = compared(FsdpConfig{});
  ASSERT_EQ(codes.size(), block_code_names.size());
  EXPECT_EQ(codes.back().compression.code, Code::sign);
  auto& known = calibration_.codings.front().codecs;
  std::erase_if(known, [](CodecTimes const& one) { return one.code == Code::low_rank; });
  EXPECT_EQ(compared(DdpConfig{}).size(), code_names.size() - 1);
}

TEST_F(CodeComparison, KeepsWhatThePlanHasOfItsCode) {
  auto const codes = compared(
      DdpConfig{.compression = {.code = Code::top_k, .error_feedback = true, .ratio = 0.1}});
  ASSERT_EQ(codes.size(), code_names.size());
  for (auto const& one : codes)
    EXPECT_EQ(one.compression.ratio, one.compression.sparse() ? 0.1 : Compression().ratio);
}

TEST_F(CodeComparison, ACodePaysBelowItsBreakEvenAndNotAbove) {
  for (bool const overlap : {false, true})
    for (auto const& [compression, bytes_sent, held, step, pays_below] :
         compared(DdpConfig{.overlap = overlap})) {
      if (!compression.on()) continue;
      SCOPED_TRACE(name_of(compression.code));
      DdpConfig const plain{.overlap = overlap},
          coded{.overlap = overlap, .compression = compression};
      EXPECT_LT(seconds(coded, 0.97 * pays_below), seconds(plain, 0.97 * pays_below));
      EXPECT_GT(seconds(coded, 1.03 * pays_below), seconds(plain, 1.03 * pays_below));
      // What overlaps with passes needs no code: less than where nothing is hidden.
      auto const open = stratagem::pays_below(compression.code, {1e-9, 0.5e-9, 0.5e-9}, 2);
      if (!compression.in_blocks()) continue;
      if (overlap)
        EXPECT_LT(pays_below, open);
      else  // pieces are coded while others travel
        EXPECT_TRUE(open < pays_below && pays_below < 2.5 * open) << pays_below / open;
    }
}

/// Sums so slow that coding takes less.
TEST_F(CodeComparison, ACodeMayPayWithoutALimitToo) {
  for (auto& operation : calibration_.operations) operation.time = Curve({{1e3, 1e-5}, {1e9, 100}});
  auto const codes = compared(DdpConfig{});
  ASSERT_EQ(codes.size(), code_names.size());
  EXPECT_TRUE(std::isinf(codes[1].pays_below));
  EXPECT_LT(codes[1].step.total(), codes[0].step.total());
  EXPECT_TRUE(codes_json(codes).at(1).at("pays_below_B_per_s").is_null());
  EXPECT_NE(codes_text(codes).find("as measured"), std::string::npos);
}

/// A worker, and its server, which works in no time.
TEST_F(CodeComparison, KnowsPushesToServers) {
  calibration_.servers = {{"sum", Curve({{1e6, 1e-9}})}};
  auto const codes = compared(PsConfig{});
  ASSERT_EQ(codes.size(), block_code_names.size());
  for (auto const& [compression, bytes_sent, held, step, pays_below] : codes) {
    if (!compression.on()) continue;
    SCOPED_TRACE(name_of(compression.code));
    PsConfig const coded{.compression = compression};
    EXPECT_EQ(bytes_sent, plan(coded).strategy.traffic.bytes_sent);
    EXPECT_LT(seconds(coded, 0.97 * pays_below), seconds(PsConfig{}, 0.97 * pays_below));
    EXPECT_GT(seconds(coded, 1.03 * pays_below), seconds(PsConfig{}, 1.03 * pays_below));
  }
}

TEST_F(CodeComparison, KeepsTheRoundingOfThePlan) {
  for (auto& codec : calibration_.codings.front().codecs) codec.rounding = Rounding::stochastic;
  auto const codes =
      compared(DdpConfig{.compression = {.code = Code::bf16, .rounding = Rounding::stochastic}});
  ASSERT_EQ(codes.size(), code_names.size());
  for (auto const& one : codes) {
    auto const& code = one.compression;
    EXPECT_EQ(code.rounding, code.in_blocks() ? Rounding::stochastic : Rounding::nearest);
    EXPECT_EQ(code.error_feedback, code.low_rank()) << "which is nothing without";
  }
  EXPECT_EQ(codes_json(codes).at(1).at("rounding"), "stochastic");
}

TEST_F(CodeComparison, IsEmptyWhereThereIsNoChoice) {
  EXPECT_TRUE(compared(LocalConfig{}).empty());
  EXPECT_TRUE(compared(DdpConfig{}, 1).empty());
  config_.precision.compute = Precision::fp64;
  EXPECT_TRUE(compared(DdpConfig{}).empty());
  config_.precision.compute = Precision::fp32;
  calibration_.codings.clear();
  EXPECT_TRUE(compared(DdpConfig{}).empty());
  EXPECT_EQ(codes_text({}), "");
}

}  // namespace
}  // namespace stratagem
