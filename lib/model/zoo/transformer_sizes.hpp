#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model_config.hpp"

namespace stratagem {

/// One size of GPT-2 or of ViT.
struct TransformerSize {
  std::string name, description;
  std::int64_t layers, heads, width;
  std::int64_t patch = 0;    ///< of images [pixels]
  std::int64_t context = 0;  ///< of text [tokens]
  std::int64_t pixels = 0;   ///< of the images that it is usually given

  bool takes_text() const { return context > 0; }
};

std::vector<TransformerSize> const& transformer_sizes();

/// The one that config.name names, with what the configuration changes. Empty for other models.
std::optional<TransformerSize> size_of(ModelConfig const& config);

/// Whether it is a model of the zoo that takes text.
bool takes_text(ModelConfig const& config);
/// The longest sequence that a model of text takes.
std::int64_t context_of(ModelConfig const& config);

}  // namespace stratagem
