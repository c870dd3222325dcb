#include "model/model.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_model.hpp"
#include "model/zoo/convnext.hpp"
#include "model/zoo/densenet.hpp"
#include "model/zoo/efficientnet.hpp"
#include "model/zoo/lenet.hpp"
#include "model/zoo/mlp.hpp"
#include "model/zoo/resnet.hpp"
#include "model/zoo/transformer.hpp"
#include "model/zoo/transformer_sizes.hpp"
#include "model/zoo/vgg.hpp"

namespace stratagem {

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (auto const& block : blocks)
    for (auto const& spec : block->declaration().parameters()) count += spec.numel();
  return count;
}

std::int64_t Model::parameter_tensors() const {
  std::int64_t count = 0;
  for (auto const& block : blocks)
    for (auto const& spec : block->declaration().parameters()) count += spec.row_begin == 0;
  return count;
}

bool Model::mixes_samples() const {
  return std::ranges::any_of(
      blocks, [](auto const& block) { return block->declaration().mixes_samples(); });
}

namespace {

std::vector<ModelEntry> make_zoo() {
  using enum MemoryFormat;
  std::vector<ModelEntry> entries{
      {"mlp", "three linear layers", 0, 1, 0, contiguous, make_mlp},
      {"lenet", "two convolutions and two linear layers", 0, 12, 0, channels_last, make_lenet},
      {"vgg16", "VGG16, as torchvision's", 3, 32, 0, channels_last, make_vgg16},
      {"resnet50", "ResNet50, as torchvision's", 3, 32, 32, channels_last, make_resnet50},
      {"densenet121", "DenseNet121, as torchvision's", 3, 32, 60, channels_last, make_densenet121},
      {"efficientnetv2_l", "EfficientNetV2-L, as torchvision's", 3, 32, 32, channels_last,
       make_efficientnetv2_l},
      {"convnext_l", "ConvNeXt-L, as torchvision's", 3, 32, 0, contiguous, make_convnext_l},
  };
  for (auto const& size : transformer_sizes())
    entries.push_back({.name = size.name,
                       .description = size.description,
                       .input_channels = 0,
                       .smallest_input = std::max<std::int64_t>(size.patch, 1),
                       .two_sample_input = 0,
                       .fastest_format = contiguous,
                       .make = make_transformer,
                       .transformer = true,
                       .takes_text = size.takes_text(),
                       .usual_size = size.pixels});
  return entries;
}

/// Keys that only some models have; a value that is not the default says that one was given.
void check_keys(ModelEntry const& entry, ModelConfig const& config) {
  auto const refuse = [&](char const* key, char const* whose) {
    throw Error(ExitCode::usage, str("model.", key, " is of ", whose),
                str("model ", entry.name, " is none"), "leave it out");
  };
  if (!entry.transformer) {
    for (auto const& [key, value] : {std::pair{"layers", config.layers},
                                     {"heads", config.heads},
                                     {"width", config.width},
                                     {"patch", config.patch},
                                     {"context", config.context},
                                     {"experts", config.experts}})
      if (value != 0) refuse(key, "transformers");
    if (config.dropout_rate != 0) refuse("dropout_rate", "transformers");
  }
  if (entry.takes_text && config.patch != 0) refuse("patch", "transformers of images");
  if (!entry.takes_text && config.context != 0) refuse("context", "models of text");
  if (!entry.takes_text && config.experts != 0) refuse("experts", "models of text");
  if (config.experts == 1)
    throw Error(ExitCode::usage, "model.experts: 1", "every token has two experts",
                "take 2 or more, or 0 for none");
  if (!entry.takes_text && !config.tie) refuse("tie", "models of text");
  if (entry.takes_text && config.tie && config.head == HeadWeights::fresh)
    throw Error(ExitCode::usage, "model.head: fresh",
                str("the head of ", entry.name, " is its token embedding"),
                "leave it out, or set model.tie to false");
}

void check_kind(ModelEntry const& entry, InputShape const& input) {
  if (entry.takes_text == input.is_text()) return;
  throw Error(ExitCode::usage,
              str("model ", entry.name, " takes ", entry.takes_text ? "text" : "images",
                  ", and the data are ", input.is_text() ? "text" : "images"),
              {}, "take another model.name, or other data");
}

}  // namespace

std::vector<ModelEntry> const& model_zoo() {
  static auto const zoo = make_zoo();
  return zoo;
}

InputShape usual_input(ModelEntry const& entry) {
  constexpr std::int64_t tokens = 64, vocabulary = 50257;
  if (entry.takes_text) return {.tokens = tokens, .vocabulary = vocabulary};
  return {.channels = entry.input_channels > 0 ? entry.input_channels : 1,
          .size = entry.usual_size};
}

at::Tensor blank_input(InputShape const& shape, std::int64_t samples,
                       at::TensorOptions const& options) {
  if (shape.is_text()) return at::zeros({samples, shape.tokens}, options.dtype(at::kLong));
  return at::zeros({samples, shape.channels, shape.size, shape.size}, options);
}

at::Tensor blank_labels(InputShape const& shape, std::int64_t samples) {
  if (shape.is_text()) return at::zeros({samples, shape.tokens}, at::kLong);
  return at::zeros({samples}, at::kLong);
}

ModelEntry const& find_model(std::string const& name) {
  auto const& zoo = model_zoo();
  auto const found = std::ranges::find(zoo, name, &ModelEntry::name);
  if (found != zoo.end()) return *found;
  std::vector<std::string> names;
  for (auto const& entry : zoo) names.push_back(entry.name);
  throw Error(ExitCode::usage, str("unknown model \"", name, "\"", did_you_mean(name, names)),
              str("known are ", join(names, ", ")), "set model.name to one of these");
}

std::int64_t input_channels(ModelConfig const& config) {
  return config.file.empty() ? find_model(config.name).input_channels
                             : exported_input(config.file).channels;
}

Model make_model(ModelConfig const& config, InputShape const& input) {
  if (!config.file.empty()) return make_exported_model(config, input);
  auto const& entry = find_model(config.name);
  check_keys(entry, config);
  check_kind(entry, input);
  if (!input.is_text() && input.size < entry.smallest_input)
    throw Error(ExitCode::usage,
                str("model ", entry.name, " cannot take images of ", input.size, " pixels"),
                str("its smallest input is ", entry.smallest_input, " pixels"),
                str("set data.input_size to ", entry.smallest_input, " or more"));
  if (entry.input_channels > 0 && input.channels != entry.input_channels)
    throw Error(ExitCode::usage,
                str("model ", entry.name, " cannot take images of ", input.channels, " channels"),
                str("it wants ", entry.input_channels));
  auto model = entry.make(config, input);
  model.classes = config.num_classes > 0 ? config.num_classes : input.vocabulary;
  model.fused = config.fused;
  model.two_sample_input = entry.two_sample_input;
  model.memory_format =
      config.memory_format == MemoryFormat::automatic ? entry.fastest_format : config.memory_format;
  return model;
}

}  // namespace stratagem
