#include "model/exported/first_loss.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "support/exported_files.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

using test::Records;
using Json = nlohmann::json;

constexpr char const* with_record = "2.15";
constexpr char const* record = "extra/stratagem.json";
constexpr InputShape input{.channels = 1, .size = 28};

/// What check_first_loss() says of a file; empty: nothing.
std::string found_in(std::filesystem::path const& file, ModelConfig config = {}) {
  config.name = "tiny";
  config.file = file.string();
  config.num_classes = 0;
  try {
    check_first_loss(config, make_model(config, input), input);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
    return error.what();
  }
  return {};
}

class FirstLoss : public testing::Test {
 protected:
  std::string changed(std::function<void(Records&)> const& change, ModelConfig config = {}) {
    auto const file = scratch_.path() / "changed.pt2";
    test::write_changed(file, change, with_record);
    return found_in(file, std::move(config));
  }

  std::string with_losses(std::function<void(Json&)> const& change) {
    return changed([&](Records& records) {
      auto content = Json::parse(records.at(record));
      change(content["first_loss"]);
      records[record] = content.dump();
    });
  }

  std::string with_graph(std::string const& from, std::string const& to) {
    return changed([&](Records& records) {
      auto& graph = records.at("models/model.json");
      auto const place = graph.find(from);
      ASSERT_NE(place, std::string::npos);
      graph.replace(place, from.size(), to);
    });
  }

  test::Scratch scratch_;
};

void expect_said(std::string const& found, std::string const& wanted) {
  EXPECT_NE(found.find(wanted), std::string::npos) << found;
}

TEST_F(FirstLoss, IsThatOfPythonInEveryFormat) {
  auto const file = test::tiny_exported(with_record);
  EXPECT_EQ(found_in(file), "");
  EXPECT_EQ(found_in(file, {.fused = false}), "");
  EXPECT_EQ(found_in(file, {.memory_format = MemoryFormat::channels_last}), "");
  EXPECT_EQ(found_in(file, {.dropout = false}), "");
}

TEST_F(FirstLoss, OfFilesThatHaveNoneIsNotAskedFor) {
  EXPECT_EQ(found_in(test::tiny_exported("2.8")), "");
  EXPECT_EQ(changed([](Records& records) { records.erase(record); }), "");
  EXPECT_EQ(with_losses([](Json& first) { first.erase("training"); }), "");
}

TEST_F(FirstLoss, ThatDiffersIsRefusedWithBothValues) {
  auto const training =
      with_losses([](Json& first) { first["training"]["loss"] = 2.3752355828371376 * 1.003; });
  expect_said(training, "its first loss in training is 2.37");
  expect_said(training, "Python's was 2.38");
  expect_said(training, "export the model again with analysis/export_model.py");
  expect_said(with_losses([](Json& first) { first["evaluation"]["loss"] = "NaN"; }),
              "its first loss in evaluation is 2.37");
}

TEST_F(FirstLoss, FindsWhatComputesSomethingElse) {
  expect_said(with_graph("torch.ops.aten.gelu.default", "torch.ops.aten.silu.default"),
              "its first loss in training");
  expect_said(with_graph("torch.ops.aten.max_pool2d.default", "torch.ops.aten.avg_pool2d.default"),
              "its first loss in training");
  expect_said(changed([](Records& records) { records.at("data/weights/weight_0")[3] ^= 0x40; }),
              "its first loss in");
}

TEST_F(FirstLoss, ThatIsDamagedIsRefused) {
  expect_said(changed([](Records& records) { records[record] = "[]"; }), "is not a JSON object");
  expect_said(with_losses([](Json& first) { first["samples"] = 1 << 30; }), "samples");
  expect_said(with_losses([](Json& first) { first["training"].erase("tolerance"); }), "tolerance");
}

}  // namespace
}  // namespace stratagem
