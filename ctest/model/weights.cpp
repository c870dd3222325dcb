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

TEST(Weights, RefusesNumbersThatNoLossCouldComeFrom) {
  test::Scratch const folder;
  auto const model = make_model({.name = "resnet50"}, {});
  auto file = file_of(model);
  auto const path = folder / "w.safetensors";
  auto const read = [&] {
    write_safetensors(path, {file.begin(), file.end()});
    return read_weights({.name = "resnet50", .weights = path.string()}, model);
  };
  EXPECT_EQ(read().size(), file.size());
  file["fc.bias"][3] = NAN;
  file["conv1.weight"][0][0][0][0] = -INFINITY;
  test::expect_bad_data(read, "2 tensors not finite: conv1.weight, fc.bias");
  file["fc.bias"] = at::full_like(file["fc.bias"], 1e300, at::kDouble);
  file["conv1.weight"].fill_(1);
  test::expect_bad_data(read, "1 tensor not finite: fc.bias");
  file["fc.bias"].fill_(1);
  EXPECT_EQ(read().size(), file.size());
  file["bn1.running_mean"][0] = INFINITY;
  file["bn1.running_var"][2] = -1;
  test::expect_bad_data(
      read,
      "1 tensor not finite: bn1.running_mean; 1 tensor with negative variances: bn1.running_var");
}

/// Older files hold masks as bytes, and counts in 32 bits.
TEST(Weights, JudgesTypesOfWhatIsUsed) {
  auto const gpt2 = small_gpt2();
  auto file = file_of(gpt2);
  file.emplace("transformer.h.0.attn.bias", at::ones({1, 1, 16, 16}, at::kByte));
  file.emplace("transformer.h.1.attn.bias", at::ones({1, 1, 16, 16}, at::kBool));
  EXPECT_EQ(match_weights(gpt2, file, HeadWeights::strict, "w").size(), state_of(gpt2).size());
  auto const resnet = make_model({.name = "resnet50"}, {});
  auto counted = file_of(resnet);
  counted["bn1.num_batches_tracked"] = at::full({}, 7, at::kInt);
  auto const taken = match_weights(resnet, counted, HeadWeights::strict, "w");
  EXPECT_EQ(taken.at("bn1.num_batches_tracked").scalar_type(), at::kLong);
  EXPECT_EQ(taken.at("bn1.num_batches_tracked").item<std::int64_t>(), 7);
  for (auto const type : {at::kByte, at::kFloat8_e4m3fn}) {
    counted["bn1.weight"] = at::zeros({64}).to(type);
    EXPECT_NE(refusal(resnet, counted, HeadWeights::strict).find("bn1.weight ("),
              std::string::npos);
  }
}

TEST(Weights, NamesWhatStandsBeforeTheNames) {
  for (auto const& model : {make_model({.name = "lenet"}, {}), small_gpt2()})
    for (std::string const prefix : {"module.", "_orig_mod.", "model.", "module._orig_mod."}) {
      TensorMap file;
      for (auto const& [name, tensor] : file_of(model)) file.emplace(prefix + name, tensor);
      auto const message = refusal(model, file, HeadWeights::strict);
      EXPECT_NE(message.find("has \"" + prefix + "\" before the names"), std::string::npos)
          << message;
      EXPECT_NE(message.find("name.removeprefix(\"" + prefix + "\")"), std::string::npos)
          << message;
    }
}

std::string reading(ModelConfig const& config, Model const& model, ExitCode code) {
  try {
    read_weights(config, model);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "accepted";
}

/// What the shapes of weights do not show.
TEST(Weights, ComparesTheCardBesideThem) {
  test::Scratch const folder;
  auto const model = small_gpt2();
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (auto const& [name, tensor] : file_of(model)) state.emplace_back(name, tensor);
  write_weights(folder / "model.safetensors", model, state);
  auto const card = nlohmann::json::parse(model.card);
  struct Case {
    char const* key;
    nlohmann::json value;
    char const* told;
  };
  for (auto const& named : {folder / "model.safetensors", folder.path()}) {
    ModelConfig const config{.name = "gpt2", .weights = named.string()};
    EXPECT_EQ(reading(config, model, ExitCode::done), "accepted");
    for (auto const& [key, value, told] : std::vector<Case>{
             {"n_head", 8, "n_head is 8 there and 4 here"},
             {"activation_function", "relu",
              "activation_function is \"relu\" there and \"gelu_new\""},
             {"layer_norm_epsilon", 0.1, "layer_norm_epsilon is 0.1 there and 1e-05 here"},
             {"scale_attn_weights", false, "scale_attn_weights is false there and true here"},
             {"scale_attn_by_inverse_layer_idx", true, "is true there and false here"},
             {"tie_word_embeddings", false, "set model.tie as there"},
             {"n_positions", 1024, "set model.context as there"},
             {"model_type", "gpt_neo", "export the model"}}) {
      auto other = card;
      other[key] = value;
      replace_file(folder / "config.json", other.dump());
      auto const message = reading(config, model, ExitCode::usage);
      EXPECT_NE(message.find(told), std::string::npos) << message;
    }
    replace_file(folder / "config.json",
                 R"({"activation_function": "gelu_pytorch_tanh", "n_inner": null, "attn_pdrop": 0.5,
                     "of_tomorrow": {}})");
    replace_file(folder / "generation_config.json", R"({"n_head": 3})");
    EXPECT_EQ(reading(config, model, ExitCode::done), "accepted");
    replace_file(folder / "config.json", "{");
    EXPECT_NE(reading(config, model, ExitCode::bad_data).find("damaged JSON"), std::string::npos);
    replace_file(folder / "config.json", model.card);
  }
}

TEST(Weights, NamesFilesOfOtherKinds) {
  using namespace std::string_literals;
  struct Case {
    std::string content;
    char const* kind;
    char const* cure;
  };
  constexpr char torch[] = "convert it with PyTorch", own[] = "load it in its own program";
  test::Scratch const folder;
  auto const model = make_model({.name = "lenet"}, {});
  auto const path = folder / "model.pt";
  for (auto const& [content, kind, cure] :
       {Case{"PK\3\4 and so on"s, "it is a zip archive", torch},
        Case{"\x80\2}q\0 and so on"s, "it is a Python pickle", torch},
        Case{"\x89HDF\r\n\x1A\n and so on"s, "it is an HDF5 file", own},
        Case{"GGUF\3\0\0\0 and so on"s, "it is a GGUF model", own},
        Case{"\x08\x07\x12\x07pytorch"s, "it is an ONNX model", own}}) {
    replace_file(path, content);
    auto const message =
        reading({.name = "lenet", .weights = path.string()}, model, ExitCode::bad_data);
    EXPECT_NE(message.find(kind), std::string::npos) << message;
    EXPECT_NE(message.find(cure), std::string::npos) << message;
  }
  auto const message =
      reading({.name = "lenet", .weights = folder.path().string()}, model, ExitCode::bad_data);
  EXPECT_NE(message.find("no weights in folder"), std::string::npos) << message;
}

}  // namespace
}  // namespace stratagem
