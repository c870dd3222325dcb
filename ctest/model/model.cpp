#include "model/model.hpp"

#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/support.hpp"

namespace stratagem {
namespace {

TEST(Model, CountsAreTorchvisions) {
  struct Row {
    char const* name;
    std::int64_t parameters, tensors;
  };
  Row const rows[] = {{"vgg16", 134'301'514, 32},       {"resnet50", 23'528'522, 161},
                      {"densenet121", 6'964'106, 364},  {"efficientnetv2_l", 117'247'082, 897},
                      {"convnext_l", 196'245'706, 344}, {"vit_tiny_4", 5'362'762, 152}};
  for (auto const& [name, parameters, tensors] : rows) {
    auto const model = make_model({.name = name}, {});
    EXPECT_EQ(model.parameter_count(), parameters) << name;
    EXPECT_EQ(model.parameter_tensors(), tensors) << name;
  }
}

/// As published; text of 50,257 different tokens.
TEST(Model, TransformersHaveThePublishedSizes) {
  struct {
    char const* name;
    std::int64_t classes, parameters, tensors;
  } const rows[] = {{"gpt2", 0, 124'439'808, 148},       {"gpt2_medium", 0, 354'823'168, 292},
                    {"gpt2_large", 0, 774'030'080, 436}, {"gpt2_xl", 0, 1'557'611'200, 580},
                    {"vit_b_16", 1000, 86'567'656, 152}, {"vit_b_16", 10, 85'806'346, 152},
                    {"vit_l_16", 1000, 304'326'632, 296}};
  for (auto const& [name, classes, parameters, tensors] : rows) {
    auto input = usual_input(find_model(name));
    if (!input.is_text()) input.channels = 3;
    auto const model = make_model({.name = name, .num_classes = classes}, input);
    EXPECT_EQ(model.parameter_count(), parameters) << name;
    EXPECT_EQ(model.parameter_tensors(), tensors) << name;
  }
  auto const small = make_model(
      {.name = "gpt2", .num_classes = 256, .layers = 4, .heads = 4, .width = 128, .context = 64},
      {.tokens = 64, .vocabulary = 256});
  EXPECT_EQ(small.parameter_count(), 834'304);
  EXPECT_EQ(small.parameter_tensors(), 52);
}

/// GPT-2 with 8 experts in 6 of its 12 layers: all parameters, and those that a token meets.
TEST(Model, ExpertsAddWhatTheyShould) {
  ModelConfig const config{.name = "gpt2", .num_classes = 0, .experts = 8};
  InputShape const input{.tokens = 64, .vocabulary = 50257};
  auto const model = make_model(config, input);
  EXPECT_EQ(model.parameter_count(), 322'818'816);
  auto const positions = 1024.0 * 768, attention = 12.0 * 12 * 768 * 64;
  EXPECT_EQ(model.train_flops, 6 * (152'811'264 - positions) + attention);
  EXPECT_TRUE(model.card.empty()) << "transformers has no such model";
}

TEST(Model, AHeadOfItsOwnIsOneTensorMore) {
  ModelConfig config{.name = "gpt2", .num_classes = 97, .layers = 2, .heads = 4, .width = 48};
  InputShape const input{.tokens = 8, .vocabulary = 97};
  auto const tied = make_model(config, input);
  config.tie = false;
  auto const untied = make_model(config, input);
  EXPECT_EQ(untied.parameter_tensors(), tied.parameter_tensors() + 1);
  EXPECT_EQ(untied.parameter_count(), tied.parameter_count() + 97 * 48);
}

TEST(Model, TransformersRefuseWhatDoesNotFit) {
  InputShape const text{.tokens = 64, .vocabulary = 256}, images{};
  struct {
    ModelConfig config;
    InputShape input;
    char const* fragment;
  } const cases[] = {
      {{.name = "gpt2", .num_classes = 0, .context = 32}, text, "64 tokens are more than"},
      {{.name = "gpt2", .num_classes = 0, .heads = 5}, text, "5 heads cannot share a width of 768"},
      {{.name = "gpt2", .num_classes = 0}, images, "takes text, and the data are images"},
      {{.name = "gpt2", .num_classes = 0, .patch = 4}, text, "patch is of transformers of images"},
      {{.name = "gpt2", .head = HeadWeights::fresh}, text, "model.head: fresh"},
      {{.name = "gpt2", .num_classes = 0, .experts = 1}, text, "every token has two experts"},
      {{.name = "vit_tiny_4", .experts = 4}, images, "model.experts is of models of text"},
      {{.name = "lenet"}, text, "takes images, and the data are text"},
      {{.name = "lenet", .width = 5}, images, "model.width is of transformers"},
      {{.name = "vit_tiny_4", .context = 64}, images, "model.context is of models of text"},
      {{.name = "vit_tiny_4", .patch = 5}, images, "cannot be cut into patches of 5"}};
  for (auto const& [config, input, fragment] : cases) {
    try {
      make_model(config, input);
      ADD_FAILURE() << "accepted: " << fragment;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
    }
  }
}

TEST(Model, HeadNamesTensorsOfTheLastBlock) {
  for (auto const& entry : model_zoo()) {
    auto const model = make_model({.name = entry.name, .num_classes = 7}, usual_input(entry));
    std::set<std::string> names;
    for (auto const& spec : model.blocks.back()->declaration().parameters())
      if (spec.shape[0] == 7) names.insert(spec.name);
    EXPECT_EQ(names, std::set<std::string>(model.head.begin(), model.head.end())) << entry.name;
  }
}

TEST(Model, SmallModelsTakeBothDatasets) {
  for (char const* name : {"mlp", "lenet"}) {
    for (InputShape const input : {InputShape{1, 28}, InputShape{3, 32}}) {
      auto const model = make_model({.name = name}, input);
      test::State const state(model.blocks);
      test::OnePass tape(model.blocks);
      Context const context{};
      auto const images = at::randn({2, input.channels, input.size, input.size});
      EXPECT_EQ(test::forward(tape, state, images, context).sizes(), at::IntArrayRef({2, 10}));
    }
  }
}

/// A training pass without gradients, on parameters that are all one and take no memory.
at::Tensor logits_of(Model const& model, std::int64_t samples, std::int64_t size) {
  Context const context{.training = true};
  auto x = at::ones({samples, 3, size, size});
  test::OnePass tape(model.blocks);
  for (int i = 0; i < tape.blocks(); ++i) {
    auto const& declaration = model.blocks[static_cast<std::size_t>(i)]->declaration();
    std::vector<at::Tensor> parameters, buffers;
    for (auto const& spec : declaration.parameters())
      parameters.push_back(at::ones({}).expand(spec.shape));
    for (auto const& spec : declaration.buffers())
      buffers.push_back(at::full(spec.shape, spec.value, spec.type));
    x = tape.infer(i, x, {parameters, buffers, context});
  }
  return x;
}

TEST(Model, EveryModelTakesItsSmallestInput) {
  for (auto const& entry : model_zoo()) {
    if (entry.takes_text) continue;
    auto const size = entry.smallest_input;
    auto const model = make_model({.name = entry.name}, {3, size});
    EXPECT_EQ(logits_of(model, 2, size).sizes(), at::IntArrayRef({2, 10})) << entry.name;
  }
}

TEST(Model, OneSampleTrainsFromTheInputThatIsSaid) {
  for (auto const& entry : model_zoo()) {
    if (entry.takes_text) continue;
    if (entry.two_sample_input == 0) {
      auto const size = entry.smallest_input;
      auto const model = make_model({.name = entry.name}, {3, size});
      EXPECT_NO_THROW(logits_of(model, 1, size)) << entry.name;
    } else {
      auto const model = make_model({.name = entry.name}, {});
      EXPECT_THROW(logits_of(model, 1, entry.two_sample_input), Error) << entry.name;
      EXPECT_NO_THROW(logits_of(model, 1, entry.two_sample_input + 1)) << entry.name;
    }
  }
}

TEST(Model, FormatIsTheFastestUnlessAsked) {
  EXPECT_EQ(make_model({.name = "resnet50"}, {}).memory_format, MemoryFormat::channels_last);
  EXPECT_EQ(
      make_model({.name = "resnet50", .memory_format = MemoryFormat::contiguous}, {}).memory_format,
      MemoryFormat::contiguous);
}

TEST(Model, FormatChangesTheWayNotTheResult) {
  auto const model = make_model({.name = "lenet"}, {});
  test::State const state(model.blocks, at::kDouble);
  test::OnePass tape(model.blocks);
  Context const context{.training = true};
  auto const images = at::randn({4, 3, 32, 32}, at::kDouble);
  auto const logits = test::forward(tape, state, images, context);
  auto const nhwc = images.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(at::allclose(test::forward(tape, state, nhwc, context), logits, 1e-10, 1e-12));
}

std::string refusal(ModelConfig const& config, InputShape const& input) {
  try {
    make_model(config, input);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Model, RefusesWhatItCannotBuild) {
  EXPECT_NE(refusal({.name = "resnet5"}, {}).find("did you mean \"resnet50\""), std::string::npos);
  EXPECT_NE(refusal({.name = "vgg16"}, {3, 28}).find("32"), std::string::npos);
  EXPECT_NE(refusal({.name = "vgg16"}, {1, 32}).find("channels"), std::string::npos);
  EXPECT_NE(refusal({.name = "lenet"}, {1, 11}).find("12"), std::string::npos);
  EXPECT_EQ(refusal({.name = "lenet"}, {1, 12}), "accepted");
}

}  // namespace
}  // namespace stratagem
