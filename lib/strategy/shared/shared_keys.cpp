#include "strategy/shared/shared_keys.hpp"

namespace stratagem {

Key micro_batches_key(int& micro_batches) {
  return {"micro_batches", integer(micro_batches, at_least(1)),
          "forward and backward passes per step", false, InFirstFile::as_comment};
}

Key accumulate_key(Accumulate& accumulate) {
  return {"accumulate", choice(accumulate, {"sharded", "unsharded"}),
          "over micro-batches: sums over ranks (sharded), or a worker's own gradients first"};
}

Keys block_code_keys(Compression& compression) {
  return {
      {"compression", choice(compression.code, {block_code_names.begin(), block_code_names.end()}),
       "how gradients are written for the wire; lossy", false, InFirstFile::as_comment},
      {"rounding", choice(compression.rounding, {rounding_names.begin(), rounding_names.end()}),
       "of a compression"},
      {"error_feedback", flag(compression.error_feedback),
       "what a compression loses is added to the next gradient"},
  };
}

Keys compression_keys(Compression& compression) {
  return block_code_keys(compression);
}

}  // namespace stratagem
