#include "model/model.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_model.hpp"
#include "model/zoo/convnext.hpp"
#include "model/zoo/densenet.hpp"
#include "model/zoo/efficientnet.hpp"
#include "model/zoo/lenet.hpp"
#include "model/zoo/mlp.hpp"
#include "model/zoo/resnet.hpp"
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

std::vector<ModelEntry> const& model_zoo() {
  using enum MemoryFormat;
  static std::vector<ModelEntry> const zoo{
      {"mlp", "three linear layers", 0, 1, 0, contiguous, make_mlp},
      {"lenet", "two convolutions and two linear layers", 0, 12, 0, channels_last, make_lenet},
      {"vgg16", "VGG16, as torchvision's", 3, 32, 0, channels_last, make_vgg16},
      {"resnet50", "ResNet50, as torchvision's", 3, 32, 32, channels_last, make_resnet50},
      {"densenet121", "DenseNet121, as torchvision's", 3, 32, 60, channels_last, make_densenet121},
      {"efficientnetv2_l", "EfficientNetV2-L, as torchvision's", 3, 32, 32, channels_last,
       make_efficientnetv2_l},
      {"convnext_l", "ConvNeXt-L, as torchvision's", 3, 32, 0, contiguous, make_convnext_l},
  };
  return zoo;
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
  if (input.size < entry.smallest_input)
    throw Error(ExitCode::usage,
                str("model ", entry.name, " cannot take images of ", input.size, " pixels"),
                str("its smallest input is ", entry.smallest_input, " pixels"),
                str("set data.input_size to ", entry.smallest_input, " or more"));
  if (entry.input_channels > 0 && input.channels != entry.input_channels)
    throw Error(ExitCode::usage,
                str("model ", entry.name, " cannot take images of ", input.channels, " channels"),
                str("it wants ", entry.input_channels));
  auto model = entry.make(config, input);
  model.classes = config.num_classes;
  model.two_sample_input = entry.two_sample_input;
  model.memory_format =
      config.memory_format == MemoryFormat::automatic ? entry.fastest_format : config.memory_format;
  return model;
}

}  // namespace stratagem
