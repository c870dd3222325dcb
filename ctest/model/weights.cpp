#include "model/weights.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

TensorMap file_of(Model const& model) {
  TensorMap file;
  for (auto const& tensor : state_of(model))
    file.emplace(tensor.name, at::zeros(tensor.shape, tensor.type));
  return file;
}

std::string refusal(Model const& model, TensorMap file, HeadWeights head) {
  try {
    match_weights(model, std::move(file), head, "w.safetensors");
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "accepted";
}

TEST(Weights, PartsAreOneTensorOfTheState) {
  auto const state = state_of(make_model({.name = "vgg16"}, {}));
  ASSERT_EQ(state.size(), 32U);
  EXPECT_EQ(state[26].name, "classifier.0.weight");
  EXPECT_EQ(state[26].shape, (std::vector<std::int64_t>{4096, 25088}));
  EXPECT_EQ(state[27].name, "classifier.0.bias");
  EXPECT_EQ(state[27].shape, (std::vector<std::int64_t>{4096}));
  EXPECT_EQ(state[28].name, "classifier.3.weight");
}

TEST(Weights, BuffersStandBesideTheirParameters) {
  auto const state = state_of(make_model({.name = "resnet50"}, {}));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 7; ++i) names.push_back(state[i].name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias",
                                             "bn1.running_mean", "bn1.running_var",
                                             "bn1.num_batches_tracked", "layer1.0.conv1.weight"}));
  EXPECT_FALSE(state[5].parameter);
  EXPECT_EQ(state[5].type, at::kLong);
}

TEST(Weights, TakesAFileThatMatches) {
  auto const model = make_model({.name = "densenet121"}, {});
  auto const file = file_of(model);
  EXPECT_EQ(match_weights(model, file, HeadWeights::strict, "w").size(), file.size());
}

TEST(Weights, TakesFilesFromBeforeBatchesWereCounted) {
  auto const model = make_model({.name = "resnet50"}, {});
  auto file = file_of(model);
  std::erase_if(file, [](auto const& item) { return item.first.ends_with("_tracked"); });
  EXPECT_EQ(match_weights(model, file, HeadWeights::strict, "w").size(), file.size());
}

TEST(Weights, NamesAllProblemsAtOnce) {
  auto const model = make_model({.name = "lenet"}, {});
  auto file = file_of(model);
  file.erase("conv1.weight");
  file["fc1.bias"] = at::zeros({3});
  file["conv2.bias"] = at::zeros({50}, at::kLong);
  file["fc9.weight"] = at::zeros({3});
  auto const message = refusal(model, file, HeadWeights::strict);
  for (char const* part : {"1 tensor missing: conv1.weight", "1 tensor unexpected: fc9.weight",
                           "2 tensors of another shape or type", "fc1.bias (Float [3] for",
                           "conv2.bias (Long [50] for", "w.safetensors", "lenet"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

TEST(Weights, FreshHeadIgnoresTheFilesHead) {
  auto const model = make_model({.name = "lenet"}, {});
  auto file = file_of(make_model({.name = "lenet", .num_classes = 1000}, {}));
  EXPECT_NE(refusal(model, file, HeadWeights::strict), "accepted");
  auto const matched = match_weights(model, file, HeadWeights::fresh, "w");
  EXPECT_EQ(matched.size(), 6U);
  EXPECT_FALSE(matched.contains("fc2.weight"));
  file.erase("fc2.weight");
  EXPECT_EQ(refusal(model, file, HeadWeights::fresh), "accepted");
}

}  // namespace
}  // namespace stratagem
