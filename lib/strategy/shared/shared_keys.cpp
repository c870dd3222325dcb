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

Key parameter_compression_key(Code& code) {
  return {"parameter_compression",
          choice(code, {parameter_code_names.begin(), parameter_code_names.end()}),
          "how parameters are written to be gathered; all ranks compute with what is read; lossy"};
}

Keys compression_keys(Compression& compression) {
  auto keys = block_code_keys(compression);
  keys.front().value = choice(compression.code, {code_names.begin(), code_names.end()});
  keys.push_back({"ratio", number(compression.ratio, {0, false, 1, true}),
                  "of top_k and random_k: elements that are sent, of each tensor's"});
  keys.push_back({"matrix_rank", integer(compression.matrix_rank, at_least(1)),
                  "of low_rank: of a gradient's matrix"});
  keys.push_back({"momentum_correction", flag(compression.momentum_correction),
                  "of top_k and random_k: workers apply momentum to their own gradients"});
  return keys;
}

}  // namespace stratagem
