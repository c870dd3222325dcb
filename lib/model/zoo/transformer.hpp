#pragma once

#include "model/model.hpp"

namespace stratagem {

/// The transformer that config.name names, with what the configuration changes of it. Error(usage)
/// for heads that do not divide the width, patches that do not divide the image, and sequences
/// longer than the context.
Model make_transformer(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
