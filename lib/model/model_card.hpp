#pragma once

#include <filesystem>

#include "model/model.hpp"

namespace stratagem {

/// Compares what Hugging Face's config.json in `folder` says with what the model computes: numbers
/// of heads, the activation and other facts that the shapes of weights do not show. What only
/// trains otherwise, as dropout does, may differ; unknown keys too. Error(usage) with both values;
/// nothing where there is no such file, or the model has no card.
void compare_card(Model const& model, std::filesystem::path const& folder);

}  // namespace stratagem
