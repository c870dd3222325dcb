#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/hash/hash.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/training.hpp"
#include "run_files/checkpoint.hpp"
#include "strategy/registry.hpp"
#include "support/scratch.hpp"
#include "train/checkpoint/writer.hpp"

namespace stratagem::test {
namespace {

namespace fs = std::filesystem;

/// Checkpoints of a training of a few steps, and what its writer says of each.
class CheckpointFiles : public ::testing::Test {
 protected:
  void save(std::vector<std::int64_t> const& steps, CheckpointConfig const& config = {},
            std::optional<fs::path> const& began_from = {}) {
    Training training{.model = "tiny_odd", .strategy = SerialConfig{}, .steps = 2};
    SerialCommunicator communicator{gpu::Device{}};
    auto const model = test_model("tiny_odd");
    training.after = [&](Participant& participant, Communicator&) {
      CheckpointWriter writer({.config = config,
                               .run_directory = run_.path(),
                               .began_from = began_from,
                               .model = model,
                               .dealt = deal_tensors(model, std::vector{0}),
                               .facts = {{"colour", "blue"}},
                               .communicator = communicator,
                               .log = log_});
      for (auto const step : steps) {
        writer.save({.step = step, .epoch = {.loss = 0.1, .steps = 3}}, participant);
        auto const problem = writer.finish();
        problems_.push_back(problem ? problem->what() : "");
      }
    };
    trained_ = train(training, communicator);
  }

  fs::path folder(std::int64_t step) const {
    return checkpoint_folder(run_.path()) / checkpoint_name(step);
  }
  /// What reading all of it says; empty when it is whole.
  static std::string problem_of(fs::path const& folder) {
    try {
      Checkpoint(folder).read([](StateName const&, at::Tensor const&) {});
      return {};
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::checkpoint);
      return error.what();
    }
  }

  Scratch run_;
  Log log_{0, false, LogLevel::error};
  Trained trained_;
  std::vector<std::string> problems_;
};

void write(fs::path const& path, std::string const& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

TEST_F(CheckpointFiles, HoldsWhatWasSaved) {
  save({7});
  Checkpoint const checkpoint(folder(7));
  EXPECT_EQ(checkpoint.record().position.step, 7);
  EXPECT_EQ(checkpoint.record().position.epoch.loss, 0.1);
  EXPECT_EQ(checkpoint.record().facts.at("colour"), "blue");
  auto const weights = checkpoint.weights();
  for (auto const& tensors : {trained_.parameters, trained_.buffers})
    for (auto const& [name, tensor] : tensors) EXPECT_TRUE(weights.at(name).equal(tensor)) << name;
  std::int64_t momenta = 0;
  checkpoint.read([&](StateName const& name, at::Tensor const&) {
    if (name.kind == "momentum") ++momenta;
    EXPECT_EQ(StateName::parse(name.text()).text(), name.text());
  });
  EXPECT_EQ(momenta, static_cast<std::int64_t>(trained_.parameters.size()));
}

TEST_F(CheckpointFiles, KeepsTheNewest) {
  save({1, 2, 3, 12}, {.keep = 2});
  EXPECT_EQ(checkpoints_of(run_.path()), (std::vector{folder(12), folder(3)}));
  EXPECT_EQ(newest_checkpoint(run_.path(), log_)->record().position.step, 12);
}

TEST_F(CheckpointFiles, ADamagedOneIsPassedOver) {
  save({1, 2});
  fs::resize_file(folder(2) / "rank-0000.safetensors", 100);
  EXPECT_EQ(newest_checkpoint(run_.path(), log_)->record().position.step, 1);
  fs::remove(folder(1) / "rank-0000.safetensors");
  try {
    newest_checkpoint(run_.path(), log_);
    FAIL() << "no checkpoint is whole";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::checkpoint);
    EXPECT_NE(std::string(error.what()).find("start at step 0"), std::string::npos);
  }
}

/// One that was passed over is no reason to remove one that is whole.
TEST_F(CheckpointFiles, WhatIsKeptIsWhole) {
  save({15, 30, 45}, {.keep = 3});
  fs::resize_file(folder(45) / "rank-0000.safetensors", 100);
  auto const taken = newest_checkpoint(run_.path(), log_);
  EXPECT_EQ(taken->record().position.step, 30);
  set_aside_after(*taken, log_);
  auto const aside = checkpoint_folder(run_.path()) / ("passed-over-" + checkpoint_name(45));
  EXPECT_TRUE(fs::exists(aside / "manifest.json"));
  save({35}, {.keep = 1}, taken->folder());
  EXPECT_EQ(checkpoints_of(run_.path()), std::vector{folder(35)});
  EXPECT_EQ(problem_of(folder(35)), "");
  EXPECT_TRUE(fs::exists(aside / "manifest.json"));
}

/// Names alone do not tell which are whole.
TEST_F(CheckpointFiles, ADamagedOneIsNotCountedAmongThoseThatAreKept) {
  save({10, 20, 30}, {.keep = 3});
  fs::resize_file(folder(30) / "rank-0000.safetensors", 100);
  save({25}, {.keep = 1}, folder(20));
  EXPECT_EQ(problem_of(folder(25)), "");
  EXPECT_EQ(newest_checkpoint(run_.path(), log_)->record().position.step, 25);
}

TEST_F(CheckpointFiles, WhatIsMovedAsideTwiceIsKeptTwice) {
  save({1, 2}, {.keep = 2});
  for (int i = 0; i < 2; ++i) {
    fs::resize_file(folder(2) / "rank-0000.safetensors", 100);
    set_aside_after(*newest_checkpoint(run_.path(), log_), log_);
    EXPECT_EQ(checkpoints_of(run_.path()), std::vector{folder(1)});
    save({2}, {.keep = 2}, folder(1));
  }
  auto const home = checkpoint_folder(run_.path());
  EXPECT_TRUE(fs::exists(home / ("passed-over-" + checkpoint_name(2) + "-2")));
}

/// Somebody has removed it: nothing of it comes back.
TEST_F(CheckpointFiles, ARunDirectoryIsNotMadeAgain) {
  auto const gone = run_ / "gone";
  Training training{.model = "tiny_odd", .strategy = SerialConfig{}, .steps = 1};
  SerialCommunicator communicator{gpu::Device{}};
  auto const model = test_model("tiny_odd");
  training.after = [&](Participant& participant, Communicator&) {
    CheckpointWriter writer({.config = {},
                             .run_directory = gone,
                             .model = model,
                             .dealt = deal_tensors(model, std::vector{0}),
                             .facts = {},
                             .communicator = communicator,
                             .log = log_});
    writer.save({.step = 1}, participant);
    static_cast<void>(writer.finish());
  };
  static_cast<void>(train(training, communicator));
  EXPECT_FALSE(fs::exists(gone));
}

TEST_F(CheckpointFiles, ASecondOfTheSameStepReplacesTheFirst) {
  save({1});
  fs::remove(folder(1) / "rank-0000.safetensors");
  save({1});
  EXPECT_EQ(problem_of(folder(1)), "");
}

TEST_F(CheckpointFiles, NoneIsNone) {
  EXPECT_FALSE(newest_checkpoint(run_.path(), log_));
}

TEST_F(CheckpointFiles, EveryTruncationIsSeen) {
  save({1});
  for (auto const* name : {"manifest.json", "rank-0000.safetensors"}) {
    auto const path = folder(1) / name;
    auto const whole = read_text(path, ExitCode::io);
    // The newline at the manifest's end says nothing.
    for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
      fs::resize_file(path, length);
      ASSERT_NE(problem_of(folder(1)), "") << name << " cut to " << length;
      if (std::string(name) == "manifest.json" || length % 997 == 0) write(path, whole);
      fs::resize_file(path, whole.size());
    }
    write(path, whole);
  }
  EXPECT_EQ(problem_of(folder(1)), "");
}

TEST_F(CheckpointFiles, EveryFlippedByteIsSeen) {
  save({1});
  CounterRandom const random(3, "damage");
  for (auto const* name : {"manifest.json", "rank-0000.safetensors"}) {
    auto const path = folder(1) / name;
    auto const whole = read_text(path, ExitCode::io);
    bool const all = std::string(name) == "manifest.json";
    std::size_t const header = 2048;  // of the other file, with some of its data
    for (std::size_t i = 0; i < (all ? whole.size() - 1 : header + 500); ++i) {
      auto const at = all || i < header ? i : random.word64(i) % whole.size();
      auto damaged = whole;
      damaged[at] =
          static_cast<char>(damaged[at] ^ static_cast<char>(1 << random.word64(i, 1) % 7));
      if (all && std::isspace(static_cast<unsigned char>(whole[at])) != 0 &&
          std::isspace(static_cast<unsigned char>(damaged[at])) != 0)
        continue;  // still the same document
      write(path, damaged);
      ASSERT_NE(problem_of(folder(1)), "") << name << ", byte " << at;
    }
    write(path, whole);
  }
}

TEST_F(CheckpointFiles, ANewerSchemaIsNamed) {
  save({1});
  auto const path = folder(1) / "manifest.json";
  auto text = read_text(path, ExitCode::io);
  auto const schema = text.find("\"schema\": 1");
  ASSERT_NE(schema, std::string::npos);
  write(path, text.replace(schema, 11, "\"schema\": 9"));
  EXPECT_NE(problem_of(folder(1)).find("schema 9"), std::string::npos);
  for (auto const* other : {"8.9e23", "-1", "1.5", "null", "\"1\"", "[1]"}) {
    write(path, str("{\"schema\": ", other, ", \"digest\": \"\", \"content\": {}}"));
    EXPECT_NE(problem_of(folder(1)).find("it has schema"), std::string::npos) << other;
  }
}

/// A record whose digest fits and whose content is what somebody made up.
TEST_F(CheckpointFiles, AHostileRecordIsRefused) {
  save({1});
  auto const path = folder(1) / "manifest.json";
  auto const sound = nlohmann::json::parse(read_text(path, ExitCode::io)).at("content");
  auto const refusal = [&](nlohmann::json const& content) {
    write(path, nlohmann::json{{"schema", CheckpointRecord::schema},
                               {"digest", Hash().add(content.dump()).hex()},
                               {"content", content}}
                    .dump());
    return problem_of(folder(1));
  };
  EXPECT_EQ(refusal(sound), "");
  using Pointer = nlohmann::json::json_pointer;
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  auto const shape =
      Pointer("/files/0/tensors") / sound.at("files").at(0).at("tensors").begin().key() / "shape";
  for (auto const& [where, value] : std::vector<std::pair<Pointer, nlohmann::json>>{
           {Pointer("/position/step"), -1},
           {Pointer("/position/step"), 1e300},
           {Pointer("/position/step"), 0.5},
           {Pointer("/position/step"), std::numeric_limits<std::uint64_t>::max()},
           {Pointer("/position/epoch/samples"), "many"},
           {Pointer("/workers"), std::int64_t{1} << 40},
           {Pointer("/workers"), -1},
           {Pointer("/files/0/bytes"), -1},
           {Pointer("/files/0/name"), "../rank-0000.safetensors"},
           {Pointer("/files/0/name"), std::string("rank-0000.safetensors\0", 22)},
           {shape, nlohmann::json::array({huge, huge})},
           {shape, nlohmann::json::array({-1})},
           {shape, 6},
           {Pointer("/facts"), nullptr},
           {Pointer("/files"), 7}}) {
    auto content = sound;
    ASSERT_TRUE(content.contains(where)) << where.to_string();
    content[where] = value;
    EXPECT_NE(refusal(content), "") << where.to_string() << " = " << value;
  }
  auto content = sound;
  content["files"].push_back(sound.at("files").at(0));
  content["files"][0]["bytes"] = huge;
  content["files"][1]["bytes"] = huge;
  EXPECT_NE(refusal(content).find("too many bytes"), std::string::npos);
}

TEST_F(CheckpointFiles, ADeepRecordIsRefusedBeforeItIsWalked) {
  save({1});
  auto const path = folder(1) / "manifest.json";
  std::string text = R"({"schema": 1, "digest": "", "content": )";
  for (int i = 0; i < 1'000'000; ++i) text += '[';
  for (int i = 0; i < 1'000'000; ++i) text += ']';
  write(path, text + "}");
  EXPECT_NE(problem_of(folder(1)).find("values within values"), std::string::npos);
}

TEST_F(CheckpointFiles, AFailureKeepsTheOldOneAndTheTraining) {
  save({1});
  write(run_ / "blocked", "");
  fs::rename(checkpoint_folder(run_.path()), run_ / "aside");
  fs::rename(run_ / "blocked", checkpoint_folder(run_.path()));
  save({2});
  EXPECT_NE(problems_.back(), "");
  fs::remove(checkpoint_folder(run_.path()));
  fs::rename(run_ / "aside", checkpoint_folder(run_.path()));
  save({3});
  EXPECT_EQ(problems_.back(), "");
  EXPECT_EQ(problem_of(folder(1)) + problem_of(folder(3)), "");
}

TEST_F(CheckpointFiles, WhatWasHalfWrittenIsRemoved) {
  save({1});
  auto const half = checkpoint_folder(run_.path()) / ".writing-step-000000002-a0";
  fs::create_directories(half);
  save({3});
  EXPECT_FALSE(fs::exists(half));
  EXPECT_EQ(checkpoints_of(run_.path()).size(), 2U);
}

}  // namespace
}  // namespace stratagem::test
