#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.hpp"

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

/// The longest sequence that a model of text takes.
std::int64_t context_of(ModelConfig const& config);

/// The transformer that config.name names, with what the configuration changes of it. Error(usage)
/// for heads that do not divide the width, patches that do not divide the image, and sequences
/// longer than the context.
Model make_transformer(ModelConfig const& config, InputShape const& input);

}  // namespace stratagem
