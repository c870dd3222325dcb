#pragma once

#include "model/model.hpp"

namespace stratagem {

/// ConvNeXt-L of Liu et al., "A ConvNet for the 2020s", 2022, as torchvision's `convnext_large`.
Model make_convnext_l(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
