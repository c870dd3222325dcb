#pragma once

#include "model/model.hpp"

namespace stratagem {

/// pixels -> 256 -> 128 -> classes with ReLU; for tests and first experiments.
Model make_mlp(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
