#include "predict/calibration.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "predict/calibrate.hpp"
#include "strategy/ps/ps_config.hpp"

namespace stratagem {
namespace {

Calibration example() {
  PassKind const kind{.model = "lenet", .memory_format = "channels_last", .precision = "fp32"};
  return {.host = "node1",
          .device = "a processor",
          .cores = 4,
          .version = "1.0 abc",
          .libtorch = "2.11",
          .mpi = "an MPI",
          .measured = "2026-01-31T23:59:59Z",
          .passes = {{kind, 2, Curve({{8, 0.5}, {16, 1}}), Curve({{8, 1}, {16, 2}}), 0.25}},
          .operations = {{"all_reduce", "mpi", 2, 2, Curve({{1024, 1e-5}, {4096, 3e-5}})}},
          .servers = {{"sum", Curve({{100, 1e-4}, {200, 2e-4}})}},
          .savings = {{1, Curve({{1000, 1}, {2000, 2}})}, {4, Curve({{1000, 3}, {2000, 6}})}},
          .codings = {{2, {{Code::int8, Rounding::stochastic, {1e-9, 2e-9, 3e-9}}}}},
          .reads = {{"flowers", 224, 1, 0.002}, {"flowers", 224, 4, 0.004}},
          .activations = {{"a pass", {.kept = 5, .peaks = {1, 7, 2}}}}};
}

std::string refusal_of(std::string const& text) {
  try {
    parse_calibration(text, "some.json");
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Calibration, CurveIsAffineBetweenPointsAndBeyondTheLast) {
  Curve const curve({{10, 2}, {20, 3}, {40, 7}});
  EXPECT_DOUBLE_EQ(curve.at(10), 2);
  EXPECT_DOUBLE_EQ(curve.at(15), 2.5);
  EXPECT_DOUBLE_EQ(curve.at(30), 5);
  EXPECT_DOUBLE_EQ(curve.at(50), 9);
  EXPECT_DOUBLE_EQ(curve.at(5), 1.5);
  EXPECT_DOUBLE_EQ(curve.scaled(2).at(50), 18);
}

TEST(Calibration, CurveOfNothingIsNothingAndOfLittleIsSomething) {
  EXPECT_DOUBLE_EQ(Curve().at(1e9), 0);
  EXPECT_DOUBLE_EQ(Curve({{10, 2}, {20, 9}}).at(1), 1) << "half of the first";
  EXPECT_DOUBLE_EQ(Curve({{10, 2}}).at(5), 1);
}

TEST(Calibration, OfPublishedFiguresSaysSo) {
  auto calibration = example();
  EXPECT_EQ(to_json(calibration).find("published"), std::string::npos);
  calibration.published = "a table of somebody";
  auto const read = parse_calibration(to_json(calibration), "some.json");
  EXPECT_EQ(read.published, "a table of somebody");
  try {
    add_to(calibration, example());
    ADD_FAILURE() << "measurements among published figures";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("published figures"), std::string::npos);
  }
}

TEST(Calibration, OfPublishedFiguresStandsForEveryNumberOfClasses) {
  auto calibration = example();
  auto const measured = calibration.passes.front().kind;
  auto other = measured;
  other.classes = 1000;
  other.memory_format = "contiguous";
  EXPECT_FALSE(calibration.stands_for(measured, other));
  calibration.published = "a table of somebody";
  EXPECT_TRUE(calibration.stands_for(measured, other));
  other.threads = 12;
  EXPECT_FALSE(calibration.stands_for(measured, other)) << "on a CPU threads decide";
  calibration.on_gpu = true;
  EXPECT_TRUE(calibration.stands_for(measured, other));
  for (auto const member : {&PassKind::model, &PassKind::precision}) {
    auto another = measured;
    another.*member = "another";
    EXPECT_FALSE(calibration.stands_for(measured, another));
  }
  other.size = 224;
  EXPECT_FALSE(calibration.stands_for(measured, other));
}

TEST(Calibration, IsReadAsItWasWritten) {
  auto const written = to_json(example());
  EXPECT_EQ(to_json(parse_calibration(written, "some.json")), written);
  auto const read = parse_calibration(written, "some.json");
  EXPECT_EQ(read.passes.at(0).kind, example().passes.at(0).kind);
  EXPECT_DOUBLE_EQ(read.passes.at(0).backward.at(12), 1.5);
  EXPECT_DOUBLE_EQ(read.servers.at(0).push.at(150), 1.5e-4);
  EXPECT_EQ(read.codecs(4).at(0).code, Code::int8);
  EXPECT_EQ(read.codecs(4).at(0).rounding, Rounding::stochastic);
  EXPECT_DOUBLE_EQ(read.codecs(4).at(0).speed.decode_and_add, 3e-9);
  EXPECT_EQ(read.activations.at("a pass").peaks, (std::vector<std::int64_t>{1, 7, 2}));
}

TEST(Calibration, RefusesWhatIsNone) {
  auto const document = nlohmann::json::parse(to_json(example()));
  auto const changed = [&](auto change) {
    auto other = document;
    change(other);
    return refusal_of(other.dump());
  };
  for (auto const* text : {"", "{", "[]", R"({"rows": []})"})
    EXPECT_NE(refusal_of(text).find("not what `stratagem calibrate` writes"), std::string::npos);
  EXPECT_NE(changed([](auto& file) { file["schema_version"] = 9; }).find("schema_version is 9"),
            std::string::npos);
  for (auto const* key : {"code", "rounding"})
    EXPECT_NE(
        changed([&](auto& file) { file["codings"][0]["codecs"][0][key] = "int7"; }).find("int7"),
        std::string::npos);
  EXPECT_NE(changed([](auto& file) { file.erase("cores"); }).find("cores"), std::string::npos);
  EXPECT_NE(changed([](auto& file) { file["cores"] = -2; }).find("-2"), std::string::npos);
  EXPECT_NE(changed([](auto& file) {
              file["passes"][0]["forward"][0]["seconds"] = 0;
            }).find("which cannot be"),
            std::string::npos);
  EXPECT_NE(changed([](auto& file) {
              file["passes"][0]["forward"] = nlohmann::json::array();
            }).find("no points"),
            std::string::npos);
  EXPECT_NE(changed([](auto& file) {
              file["operations"][0]["time"][1]["bytes"] = 1024;
            }).find("do not rise"),
            std::string::npos);
  for (auto const& kept : {nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json("much")})
    EXPECT_NE(changed([&](auto& file) { file["activations"][0]["kept"] = kept; }).find(kept.dump()),
              std::string::npos);
  EXPECT_NE(changed([](auto& file) {
              file["activations"][0]["peaks"] = {1, 2};
            }).find("lacks moments"),
            std::string::npos);
  EXPECT_NE(changed([](auto& file) { file["passes"] = "none"; }).find("some.json"),
            std::string::npos);
}

TEST(Calibration, GrowsByWhatWasMeasuredAnotherTime) {
  auto known = example();
  auto newer = example();
  newer.host = "node2";
  newer.passes[0].optimizer_s = 9;
  newer.operations[0].ranks = 4;
  newer.servers.clear();
  add_to(known, newer);
  ASSERT_EQ(known.passes.size(), 1U) << "of the same ranks and kind";
  EXPECT_DOUBLE_EQ(known.passes[0].optimizer_s, 9);
  EXPECT_EQ(known.operations.size(), 2U);
  EXPECT_EQ(known.servers.size(), 1U);
  EXPECT_EQ(known.host, "node2");
  newer.cores = 64;
  EXPECT_THROW(add_to(known, newer), Error);
}

TEST(Calibration, KnowsNodesFromWhatItMet) {
  auto calibration = example();
  EXPECT_EQ(calibration.ranks_on_node(8), 8) << "one node is all that was met";
  calibration.operations.push_back({.operation = "all_reduce", .ranks = 8, .ranks_per_node = 4});
  EXPECT_EQ(calibration.ranks_on_node(8), 4);
  EXPECT_EQ(calibration.ranks_on_node(16), 4);
  EXPECT_EQ(calibration.ranks_on_node(3), 3);
}

TEST(Calibration, TellsTheTimeOfSavingByTheRanksOfANode) {
  auto calibration = example();
  EXPECT_DOUBLE_EQ(calibration.save_s(1, 1500), 1.5);
  EXPECT_DOUBLE_EQ(calibration.save_s(8, 1500), 4.5) << "of four, the nearest";
  EXPECT_DOUBLE_EQ(calibration.save_s(2, 1500), 1.5);
  calibration.savings.clear();
  EXPECT_DOUBLE_EQ(calibration.save_s(2, 1500), 0);
}

TEST(Calibration, TellsHowFastImagesAreRead) {
  auto const calibration = parse_calibration(to_json(example()), "some.json");
  DataConfig const flowers{.dataset = "flowers", .path = "flowers", .input_size = 224};
  EXPECT_DOUBLE_EQ(calibration.read_s(flowers, 1), 0.002);
  EXPECT_DOUBLE_EQ(calibration.read_s(flowers, 2), 0.002);
  EXPECT_DOUBLE_EQ(calibration.read_s(flowers, 8), 0.004);
  auto smaller = flowers;
  smaller.input_size = 64;
  try {
    calibration.read_s(smaller, 1);
    ADD_FAILURE() << "known at another size";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("images of flowers are read at 64 pixels"),
              std::string::npos);
  }
  auto twice = example(), newer = example();
  newer.reads = {{"flowers", 224, 4, 0.005}, {"flowers", 64, 1, 0.001}};
  add_to(twice, newer);
  EXPECT_EQ(twice.reads.size(), 3u);
  EXPECT_DOUBLE_EQ(twice.read_s(flowers, 4), 0.005);
  auto older = nlohmann::json::parse(to_json(example()));
  older.erase("reads");
  EXPECT_TRUE(parse_calibration(older.dump(), "some.json").reads.empty());
}

TEST(Calibration, ServersWorkByTheirPolicy) {
  auto const work = [](PsMode mode) { return policy_of({.mode = mode}, 2).work(); };
  EXPECT_EQ(work(PsMode::sync), "sum");
  EXPECT_EQ(work(PsMode::async), "each");
  EXPECT_EQ(work(PsMode::modified), "each");
  EXPECT_EQ(work(PsMode::dc), "corrected");
  EXPECT_EQ(work(PsMode::dc_adaptive), "corrected");
  EXPECT_EQ(work(PsMode::gap_aware), "corrected");
  EXPECT_EQ(work(PsMode::dana), "look_ahead");
}

TEST(Calibration, WantsEveryKindOfPassOnceWithItsSizes) {
  RunConfig base;
  base.data = {.dataset = "synthetic-digits", .global_batch = 64, .subset = 640};
  base.model = {.name = "mlp"};
  base.run.ranks = 1;
  std::vector<RunConfig> runs;
  for (int ranks : {1, 2, 4, 8, 16}) {
    runs.push_back(base);
    runs.back().run.ranks = ranks;
  }
  auto impossible = base;
  impossible.run.ranks = 7;
  runs.push_back(impossible);
  auto lenet = base;
  lenet.model.name = "lenet";
  runs.push_back(lenet);
  auto const wanted = wanted_passes(runs);
  ASSERT_EQ(wanted.size(), 2U);
  EXPECT_EQ(wanted[0].samples, (std::vector<std::int64_t>{4, 8, 32, 64}));
  EXPECT_EQ(wanted[1].config.model.name, "lenet");
  EXPECT_EQ(wanted[1].samples, (std::vector<std::int64_t>{16, 64}));
}

/// BatchNorm of a map of one pixel refuses a sample alone.
TEST(Calibration, WantsNoPassThatAModelRefuses) {
  RunConfig run;
  run.run.ranks = 1;
  run.data = {.dataset = "synthetic-shapes", .subset = 640};
  run.model = {.name = "resnet50"};
  auto const sizes = [&](std::int64_t batch) {
    run.data.global_batch = batch;
    return wanted_passes({run}).front().samples;
  };
  EXPECT_EQ(sizes(16), (std::vector<std::int64_t>{4, 16}));
  EXPECT_EQ(sizes(4), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(sizes(2), (std::vector<std::int64_t>{2, 4}));
  run.model.name = "lenet";
  run.data.dataset = "synthetic-digits";
  EXPECT_EQ(sizes(4), (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(sizes(1), (std::vector<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace stratagem
