#include "plan/run_plan.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "predict/reports/plan_report.hpp"
#include "support/exported_files.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

RunConfig lenet_on_digits() {
  RunConfig config;
  config.run = {.name = "cell", .epochs = 3};
  config.data = {.dataset = "synthetic-digits", .global_batch = 12, .subset = 100};
  config.model = {.name = "lenet"};
  return config;
}

Model model_of(RunConfig const& config) {
  return make_model(config.model, input_shape(config));
}

RunPlan plan(RunConfig const& config, int ranks) {
  return make_run_plan(config, model_of(config), known_size(config.data), ranks);
}

/// The text of the refusal; empty when there is none.
std::string refusal(RunConfig const& config, int ranks) {
  try {
    plan(config, ranks);
    return {};
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
}

/// The plan whose hash ranks compare is the one that makes the members.
TEST(RunPlan, OtherImagesLeaveTheStrategysPlanAsItIs) {
  auto const config = lenet_on_digits();
  auto const published = plan(config, 3);
  auto const found = with_images(published, {.train = 60, .test = 30});
  EXPECT_EQ(found.strategy.strategy, published.strategy.strategy) << "the same object";
  EXPECT_EQ(found.strategy.hash(), published.strategy.hash());
  auto const anew = make_run_plan(config, model_of(config), {60, 30}, 3);
  EXPECT_EQ(found.total_steps, anew.total_steps);
  EXPECT_EQ(found.steps_per_epoch, 5);
  EXPECT_NE(found.total_steps, published.total_steps);
  EXPECT_EQ(found.samples_per_pass, anew.samples_per_pass);
  EXPECT_THROW(with_images(published, {.train = 11, .test = 30}), Error) << "no step";
}

TEST(RunPlan, PassesOfMoreSamplesThanAFileWasExportedForAreRefused) {
  test::Scratch const scratch;
  auto config = lenet_on_digits();
  config.model = {.file = (scratch / "limited.pt2").string(), .num_classes = 0};
  config.data.input_size = 28;
  test::write_changed(config.model.file, [](test::Records& records) {
    auto graph = nlohmann::json::parse(records.at("models/model.json"));
    graph["range_constraints"].begin().value()["max_val"] = 4;
    records["models/model.json"] = graph.dump();
  });
  EXPECT_EQ(refusal(config, 3), "");
  EXPECT_NE(refusal(config, 2).find("at most 4 samples, and each pass of a worker has 6"),
            std::string::npos);
  config.strategy = DdpConfig{.micro_batches = 2};
  EXPECT_EQ(refusal(config, 2), "");
}

TEST(RunPlan, MoreEpochsThanCanBeCountedAreRefused) {
  auto config = lenet_on_digits();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  config.run.epochs = most;
  EXPECT_NE(refusal(config, 3).find("run.epochs: 9223372036854775807"), std::string::npos);
  config.run.max_steps = 5;
  EXPECT_NE(refusal(config, 3), "") << "epochs are counted all the same";
  config.run.epochs = most / 100;  // of 100 images
  EXPECT_EQ(plan(config, 3).total_steps, 5);
  config.run.max_steps = 0;
  EXPECT_EQ(plan(config, 3).total_steps, most / 100 * 8);
}

TEST(RunPlan, CountsStepsAndSamples) {
  auto config = lenet_on_digits();
  auto const whole = plan(config, 3);
  EXPECT_EQ(whole.global_batch, 12);
  EXPECT_EQ(whole.batch_per_rank, 4);
  EXPECT_EQ(whole.samples_per_pass, 4);
  EXPECT_EQ(whole.steps_per_epoch, 8) << "4 images are left over";
  EXPECT_EQ(whole.total_steps, 24);

  config.run.max_steps = 5;
  config.strategy = DdpConfig{.micro_batches = 2};
  EXPECT_EQ(plan(config, 3).total_steps, 5);
  EXPECT_EQ(plan(config, 3).samples_per_pass, 2);

  config.strategy = SerialConfig{.emulate_ranks = 3};
  EXPECT_EQ(plan(config, 1).batch_per_rank, 12);
  EXPECT_EQ(plan(config, 1).samples_per_pass, 4);

  config.data.global_batch = 0;
  config.data.batch_per_worker = 4;
  EXPECT_EQ(plan(config, 1).global_batch, 12) << "emulated ranks are workers";
  config.strategy = DdpConfig{};
  EXPECT_EQ(plan(config, 5).global_batch, 20);
}

TEST(RunPlan, TakesChannelsFromTheModelOrElseTheData) {
  auto config = lenet_on_digits();
  EXPECT_EQ(input_shape(config).channels, 1);
  config.model.name = "vgg16";
  EXPECT_EQ(input_shape(config).channels, 3);
  EXPECT_EQ(known_size(config.data).train, 100);
  config.data = {.dataset = "cifar10"};
  EXPECT_EQ(known_size(config.data).train, 50'000);
}

TEST(RunPlan, StepsFollowTheImagesThatAreNotHeldOut) {
  auto config = lenet_on_digits();
  config.data.holdout = 30;
  auto const held = plan(config, 3);
  EXPECT_EQ(held.images.train, 70);
  EXPECT_EQ(held.images.test, 30);
  EXPECT_EQ(held.steps_per_epoch, 5) << "of 12 images";
  EXPECT_EQ(held.total_steps, 15);
  EXPECT_NE(plan_text({held}, model_of(config)).find("70 training and 30 held-out images"),
            std::string::npos);
}

TEST(RunPlan, RefusesWhatDoesNotFitTogether) {
  struct {
    char const* what;
    int ranks;
    void (*change)(RunConfig&);
    char const* words;
  } const cases[]{
      {"good", 2, [](RunConfig&) {}, ""},
      {"not divisible", 5, [](RunConfig&) {}, "nearest values are 10 and 15"},
      {"more ranks than samples", 13, [](RunConfig&) {}, "least value is 13"},
      {"not divisible by micro-batches", 2,
       [](RunConfig& c) { c.strategy = DdpConfig{.micro_batches = 4}; },
       "nearest values are 8 and 16"},
      {"batch larger than the data", 1, [](RunConfig& c) { c.data.global_batch = 101; },
       "more than the 100 training images"},
      {"batch larger than what is trained on", 1, [](RunConfig& c) { c.data.holdout = 89; },
       "more than the 11 training images"},
      {"all held out", 1, [](RunConfig& c) { c.data.holdout = 100; }, "data.holdout: 100 of 100"},
      {"only evaluated", 1,
       [](RunConfig& c) {
         c.data.global_batch = 101;
         c.run.epochs = 0;
       },
       ""},
      {"small input", 1, [](RunConfig& c) { c.data.input_size = 27; }, "less than the 28"},
      {"batch norm on one sample", 12, [](RunConfig& c) { c.model.name = "resnet50"; },
       "batch normalisation"},
      {"batch norm on larger images", 12,
       [](RunConfig& c) {
         c.model.name = "resnet50";
         c.data.input_size = 64;
       },
       ""},
      {"serial on two ranks", 2, [](RunConfig& c) { c.strategy = SerialConfig{}; }, "one process"},
  };
  for (auto const& [what, ranks, change, words] : cases) {
    auto config = lenet_on_digits();
    change(config);
    auto const text = refusal(config, ranks);
    EXPECT_EQ(text.empty(), std::string_view(words).empty()) << what << ": " << text;
    EXPECT_NE(text.find(words), text.npos) << what << ": " << text;
  }
}

TEST(RunPlan, OnlyBatchNormOfSinglePixelsRefusesSingleSamples) {
  auto config = lenet_on_digits();
  config.data.global_batch = 2;
  config.model = {.name = "resnet50"};
  EXPECT_NE(refusal(config, 2).find("the last maps of resnet50"), std::string::npos);
  EXPECT_EQ(refusal(config, 1), "") << "two samples";
  config.model = {.name = "lenet"};
  EXPECT_EQ(refusal(config, 2), "") << "no BatchNorm";
  config.data.dataset = "synthetic-text";
  config.data.seq_len = 8;
  config.model = {
      .name = "gpt2", .num_classes = 16, .layers = 1, .heads = 2, .width = 16, .context = 8};
  EXPECT_EQ(refusal(config, 2), "") << "no pixels";
}

TEST(RunPlan, IsReportedInNumbersAndForPeople) {
  auto const config = lenet_on_digits();
  auto const model = model_of(config);
  auto const report = nlohmann::json::parse(plan_json({plan(config, 4)}, model));
  EXPECT_EQ(report.at("ranks"), 4);
  EXPECT_EQ(report.at("total_steps"), 24);
  EXPECT_EQ(report.at("parameters"), model.parameter_count());
  EXPECT_EQ(report.at("rank_map").size(), 4U);
  EXPECT_EQ(report.at("rank_map")[3].at("first_sample"), 9);

  auto const text = plan_text({plan(config, 4)}, model);
  for (auto const* words : {"lenet, 931,080 parameters", "12 per step, 3 per rank", "bucket"})
    EXPECT_NE(text.find(words), text.npos) << text;
  auto many = lenet_on_digits();
  many.data.global_batch = 100;
  EXPECT_NE(plan_text({plan(many, 100)}, model).find("and so on to rank 99"), text.npos);
}

}  // namespace
}  // namespace stratagem
