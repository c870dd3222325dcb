#pragma once

namespace stratagem {

/// What is added first where a step has several micro-batches: a worker's own gradients
/// (unsharded), or those of all workers for one micro-batch (sharded).
enum class Accumulate { sharded, unsharded };

}  // namespace stratagem
