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
  Row const rows[] = {{"vgg16", 134'301'514, 32},
                      {"resnet50", 23'528'522, 161},
                      {"densenet121", 6'964'106, 364},
                      {"efficientnetv2_l", 117'247'082, 897},
                      {"convnext_l", 196'245'706, 344}};
  for (auto const& [name, parameters, tensors] : rows) {
    auto const model = make_model({.name = name}, {});
    EXPECT_EQ(model.parameter_count(), parameters) << name;
    EXPECT_EQ(model.parameter_tensors(), tensors) << name;
  }
}

TEST(Model, HeadNamesTensorsOfTheLastBlock) {
  for (auto const& entry : model_zoo()) {
    auto const model = make_model({.name = entry.name, .num_classes = 7}, {});
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
      BlockTape tape(model.blocks);
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
  BlockTape tape(model.blocks);
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
    auto const size = entry.smallest_input;
    auto const model = make_model({.name = entry.name}, {3, size});
    EXPECT_EQ(logits_of(model, 2, size).sizes(), at::IntArrayRef({2, 10})) << entry.name;
  }
}

TEST(Model, OneSampleTrainsFromTheInputThatIsSaid) {
  for (auto const& entry : model_zoo()) {
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
  BlockTape tape(model.blocks);
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
