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

}  // namespace stratagem
