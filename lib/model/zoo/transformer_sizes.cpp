#include "model/zoo/transformer_sizes.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "model/zoo/gpt2.hpp"
#include "model/zoo/vit.hpp"

namespace stratagem {
namespace {

/// The named size, with what the configuration changes.
TransformerSize size_of(ModelConfig const& config) {
  auto const& sizes = transformer_sizes();
  auto const found = std::ranges::find(sizes, config.name, &TransformerSize::name);
  expects(found != sizes.end(), "a transformer of the zoo");
  auto size = *found;
  for (auto const& [place, given] : {std::pair{&size.layers, config.layers},
                                     {&size.heads, config.heads},
                                     {&size.width, config.width},
                                     {&size.patch, config.patch},
                                     {&size.context, config.context}})
    if (given > 0) *place = given;
  return size;
}

void check(TransformerSize const& size, InputShape const& input) {
  if (size.width % size.heads != 0)
    throw Error(ExitCode::usage,
                str("model.heads: ", size.heads, " heads cannot share a width of ", size.width),
                "every head has the same part of it", "take a model.width that they divide");
  if (size.takes_text()) {
    if (input.tokens > size.context)
      throw Error(ExitCode::usage,
                  str("data.seq_len: ", input.tokens, " tokens are more than the context of ",
                      size.context),
                  str("model ", size.name, " has learned positions, as many as its context"),
                  "make data.seq_len smaller, or model.context larger");
    return;
  }
  if (input.size % size.patch != 0)
    throw Error(ExitCode::usage,
                str("images of ", input.size, " pixels cannot be cut into patches of ", size.patch),
                {},
                str("take a data.input_size that is a multiple of ", size.patch,
                    ", or another model.patch"));
}

}  // namespace

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

std::int64_t context_of(ModelConfig const& config) {
  return size_of(config).context;
}

Model make_transformer(ModelConfig const& config, InputShape const& input) {
  auto const size = size_of(config);
  check(size, input);
  auto const classes = config.num_classes > 0 ? config.num_classes : input.vocabulary;
  if (size.takes_text())
    return make_gpt2(size.name,
                     {.layers = size.layers,
                      .heads = size.heads,
                      .width = size.width,
                      .context = size.context,
                      .vocabulary = classes,
                      .tie = config.tie,
                      .dropout = config.dropout_rate},
                     input.tokens);
  return make_vit(size.name,
                  {.layers = size.layers,
                   .heads = size.heads,
                   .width = size.width,
                   .patch = size.patch,
                   .dropout = config.dropout_rate},
                  input, classes);
}

}  // namespace stratagem
