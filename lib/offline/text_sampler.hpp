#pragma once

#include <cstdint>
#include <span>

#include "model/block_tape.hpp"
#include "model/weights.hpp"
#include "plan/run_config.hpp"
#include "strategy/pass/replica.hpp"

namespace stratagem {

/// How the next token is drawn from what a model makes of a text.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; 0: the most probable token
  std::int64_t top_k = 0;  ///< only of the k most probable tokens; 0: of all
  std::uint64_t seed = 1;
};

/// A trained model of text that continues others, on the CPU.
class TextSampler {
 public:
  /// Of a run with this configuration. Error(usage) if its model takes no text, Error(bad_data) if
  /// `weights` are not of its model.
  TextSampler(RunConfig const& config, TensorMap weights);

  std::int64_t vocabulary() const { return model_.classes; }
  /// The token after `text`, which is not empty, and of which the model sees as much as it was
  /// trained on. A pure function of text, sampling and the length of `text`.
  std::int64_t next(std::span<std::int64_t const> text, Sampling const& sampling);

 private:
  /// Of the token that follows `text`, int64 [tokens]: fp64 [vocabulary].
  at::Tensor logits_of(at::Tensor const& text);

  Model model_;
  Replica replica_;
  Buffers buffers_;
  BlockTape tape_;
  TapePass pass_;
  std::int64_t length_;  ///< of sequences [tokens]
};

}  // namespace stratagem
