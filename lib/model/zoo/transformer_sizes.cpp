#include "model/zoo/transformer_sizes.hpp"

#include <algorithm>
#include <utility>

namespace stratagem {

std::vector<TransformerSize> const& transformer_sizes() {
  static std::vector<TransformerSize> const sizes{
      {"vit_tiny_4", "ViT-Ti with patches of 4x4, for small images", 12, 3, 192, 4, 0, 32},
      {"vit_b_16", "ViT-B/16, as torchvision's", 12, 12, 768, 16, 0, 224},
      {"vit_b_32", "ViT-B/32, as torchvision's", 12, 12, 768, 32, 0, 224},
      {"vit_l_16", "ViT-L/16, as torchvision's", 24, 16, 1024, 16, 0, 224},
      {"gpt2", "GPT-2 of text, as Hugging Face's", 12, 12, 768, 0, 1024},
      {"gpt2_medium", "GPT-2 medium of text, as Hugging Face's", 24, 16, 1024, 0, 1024},
      {"gpt2_large", "GPT-2 large of text, as Hugging Face's", 36, 20, 1280, 0, 1024},
      {"gpt2_xl", "GPT-2 XL of text, as Hugging Face's", 48, 25, 1600, 0, 1024}};
  return sizes;
}

std::optional<TransformerSize> size_of(ModelConfig const& config) {
  auto const& sizes = transformer_sizes();
  auto const found = std::ranges::find(sizes, config.name, &TransformerSize::name);
  if (found == sizes.end() || !config.file.empty()) return std::nullopt;
  auto size = *found;
  for (auto const& [place, given] : {std::pair{&size.layers, config.layers},
                                     {&size.heads, config.heads},
                                     {&size.width, config.width},
                                     {&size.patch, config.patch},
                                     {&size.context, config.context}})
    if (given > 0) *place = given;
  return size;
}

bool takes_text(ModelConfig const& config) {
  auto const size = size_of(config);
  return size && size->takes_text();
}

std::int64_t context_of(ModelConfig const& config) {
  auto const size = size_of(config);
  return size ? size->context : 0;
}

}  // namespace stratagem
