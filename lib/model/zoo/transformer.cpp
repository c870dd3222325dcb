#include "model/zoo/transformer.hpp"

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "model/zoo/gpt2.hpp"
#include "model/zoo/transformer_sizes.hpp"
#include "model/zoo/vit.hpp"

namespace stratagem {
namespace {

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

Model make_transformer(ModelConfig const& config, InputShape const& input) {
  auto const size = size_of(config);
  expects(size.has_value(), "a transformer of the zoo");
  check(*size, input);
  auto const classes = config.num_classes > 0 ? config.num_classes : input.vocabulary;
  if (size->takes_text())
    return make_gpt2(size->name,
                     {.layers = size->layers,
                      .heads = size->heads,
                      .width = size->width,
                      .context = size->context,
                      .vocabulary = classes,
                      .tie = config.tie,
                      .experts = config.experts,
                      .dropout = config.dropout_rate},
                     input.tokens);
  return make_vit(size->name,
                  {.layers = size->layers,
                   .heads = size->heads,
                   .width = size->width,
                   .patch = size->patch,
                   .dropout = config.dropout_rate},
                  input, classes);
}

}  // namespace stratagem
