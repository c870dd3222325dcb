#pragma once

#include "model/model.hpp"

namespace stratagem {

/// EfficientNetV2-L of Tan and Le, "EfficientNetV2: smaller models and faster training", 2021, as
/// torchvision's `efficientnet_v2_l`.
Model make_efficientnetv2_l(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
