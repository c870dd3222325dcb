#pragma once

#include "model/model.hpp"

namespace stratagem {

/// A decoder of text (Radford et al., "Language models are unsupervised multitask learners", 2019),
/// with the tensors of Hugging Face's GPT-2. From tokens [n, T] to logits [n, T, vocabulary].
struct Gpt2Shape {
  std::int64_t layers = 12, heads = 12, width = 768;
  std::int64_t context = 1024;  ///< longest sequence
  std::int64_t vocabulary = 50257;
  bool tie = true;           ///< the head uses the token embedding instead of a matrix of its own
  std::int64_t experts = 0;  ///< in the MLP half of every second layer, see experts.hpp; 0: none
  double dropout = 0;        ///< of the embedding and of what each half of a layer adds
};

/// Blocks: embedding, then the attention and the MLP half of every layer, then the head.
/// `tokens`: of the sequences that it is trained on.
Model make_gpt2(std::string const& name, Gpt2Shape const& shape, std::int64_t tokens);

}  // namespace stratagem
