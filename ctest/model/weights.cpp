#include "model/weights.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "support/expect_bad_data.hpp"
#include "support/scratch.hpp"

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

Model small_gpt2(bool tie = true) {
  return make_model({.name = "gpt2",
                     .num_classes = 97,
                     .layers = 2,
                     .heads = 4,
                     .width = 48,
                     .context = 16,
                     .tie = tie},
                    {.tokens = 8, .vocabulary = 97});
}

/// The published files of GPT-2 have no "transformer." and hold the masks of attention.
TEST(Weights, TakesGpt2AsHuggingFaceWritesIt) {
  auto const model = small_gpt2();
  TensorMap published;
  for (auto const& [name, tensor] : file_of(model))
    published.emplace(name.substr(sizeof("transformer.") - 1), tensor);
  published.emplace("h.0.attn.bias", at::ones({1, 1, 16, 16}));
  published.emplace("h.0.attn.masked_bias", at::zeros({}));
  auto const taken = match_weights(model, published, HeadWeights::strict, "w");
  EXPECT_EQ(taken.size(), state_of(model).size());
  EXPECT_TRUE(taken.contains("transformer.h.1.mlp.c_fc.weight"));
}

TEST(Weights, ATiedTensorMayBeThereTwiceButNotDiffer) {
  auto const model = small_gpt2();
  auto file = file_of(model);
  file.emplace("lm_head.weight", at::zeros({97, 48}));
  EXPECT_EQ(match_weights(model, file, HeadWeights::strict, "w").size(), state_of(model).size());
  file.at("lm_head.weight") = at::ones({97, 48});
  EXPECT_NE(refusal(model, file, HeadWeights::strict)
                .find("1 tensor unlike the tensor they are tied to: lm_head.weight"),
            std::string::npos);
  EXPECT_EQ(match_weights(small_gpt2(false), file, HeadWeights::strict, "w").size(), file.size());
}

TEST(Weights, SaysThatMatricesAreTransposed) {
  auto const model = small_gpt2();
  auto file = file_of(model);
  auto& matrix = file.at("transformer.h.0.attn.c_attn.weight");
  matrix = matrix.t().contiguous();
  EXPECT_NE(refusal(model, file, HeadWeights::strict).find("[48, 144], transposed)"),
            std::string::npos);
}

TEST(Weights, TakesViTFilesOfOlderTorchvision) {
  auto const model = make_model({.name = "vit_tiny_4", .layers = 2, .heads = 3, .width = 24}, {});
  TensorMap old;
  for (auto const& [name, tensor] : file_of(model)) {
    auto renamed = name;
    for (auto const& [present, before] :
         {std::pair<std::string, std::string>{".mlp.0.", ".mlp.linear_1."},
          {".mlp.3.", ".mlp.linear_2."}})
      if (auto const at = renamed.find(present); at != std::string::npos)
        renamed.replace(at, present.size(), before);
    old.emplace(renamed, tensor);
  }
  EXPECT_TRUE(old.contains("encoder.layers.encoder_layer_0.mlp.linear_1.weight"));
  EXPECT_EQ(match_weights(model, old, HeadWeights::strict, "w").size(), old.size());
}

/// What from_pretrained takes, and several files that an index names.
TEST(Weights, FoldersOfHuggingFaceAreWrittenAndRead) {
  test::Scratch const folder;
  auto const model = small_gpt2();
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (auto const& tensor : state_of(model))
    tensors.emplace_back(tensor.name, at::randn(tensor.shape));
  write_weights(folder / "other.safetensors", model, tensors);
  EXPECT_FALSE(std::filesystem::exists(folder / "config.json"));
  write_weights(folder / "model.safetensors", model, tensors);
  auto const card = nlohmann::json::parse(read_text(folder / "config.json", ExitCode::io));
  EXPECT_EQ(card["n_layer"], 2);
  EXPECT_EQ(card["vocab_size"], 97);

  auto const half = tensors.begin() + 5;
  write_safetensors(folder / "model-1.safetensors", {tensors.begin(), half});
  write_safetensors(folder / "model-2.safetensors", {half, tensors.end()});
  nlohmann::json map;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    map[tensors[i].first] = i < 5 ? "model-1.safetensors" : "model-2.safetensors";
  auto const index = folder / "model.safetensors.index.json";
  replace_file(index, nlohmann::json{{"weight_map", map}}.dump());
  auto const read = read_weights({.name = "gpt2", .weights = index.string()}, model);
  ASSERT_EQ(read.size(), tensors.size());
  for (auto const& [name, tensor] : tensors) EXPECT_TRUE(read.at(name).equal(tensor)) << name;
  replace_file(index, "[]");
  test::expect_bad_data([&] { read_weights({.name = "gpt2", .weights = index.string()}, model); },
                        "it has no weight_map");
}

}  // namespace
}  // namespace stratagem
