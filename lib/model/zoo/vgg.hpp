#pragma once

#include "model/model.hpp"

namespace stratagem {

/// VGG16 ("configuration D") of Simonyan and Zisserman, "Very deep convolutional networks for
/// large-scale image recognition", 2015, as torchvision's `vgg16`. The first linear layer has 77 %
/// of the parameters; it is divided into parts of 512 rows.
Model make_vgg16(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
