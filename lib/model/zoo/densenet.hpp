#pragma once

#include "model/model.hpp"

namespace stratagem {

/// DenseNet121 of Huang et al., "Densely connected convolutional networks", 2017, as torchvision's
/// `densenet121`. Each dense layer is a block; its output is its input concatenated with its
/// result.
Model make_densenet121(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
