#pragma once

#include <cstdint>
#include <vector>

namespace stratagem {

/// [begin, end).
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
};

/// The training images in the order in which an epoch visits them: a function of seed and epoch
/// alone, so that every number of ranks trains on the same global batches.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t images);

/// Whole global batches of an epoch. The images that are left over at the end of its order are not
/// trained on in it; another epoch leaves out others. 0 when there is not enough for one.
std::int64_t steps_per_epoch(std::int64_t images, std::int64_t global_batch);

/// One rank among those that share every global batch.
struct RankSlice {
  int rank = 0;
  int ranks = 1;

  /// Its places in a global batch, which the number of ranks divides.
  IndexRange of_batch(std::int64_t global_batch) const;
  /// Its part of an evaluation: contiguous; together the ranks cover every image once, and their
  /// parts differ by one image at most.
  IndexRange of_evaluation(std::int64_t images) const;
};

/// One rank's part of the global batch of one step.
struct Share {
  std::int64_t step = 0;
  RankSlice slice;
};

}  // namespace stratagem
