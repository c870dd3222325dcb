#pragma once

#include "model/model.hpp"

namespace stratagem {

/// ResNet50 of He et al., "Deep residual learning for image recognition", 2016, as torchvision's
/// `resnet50`: the stride is in the 3x3 convolution ("version 1.5").
Model make_resnet50(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
