#pragma once

#include "model/model.hpp"

namespace stratagem {

/// LeCun et al., "Gradient-based learning applied to document recognition", 1998, in the later
/// form with ReLU and max-pooling: 20 and 50 filters of 5x5, then 500 hidden units.
Model make_lenet(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
