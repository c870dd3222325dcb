#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace stratagem {

/// [begin, end).
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
};

/// The training images in the order in which an epoch visits them. Depends only on seed and epoch,
/// so any number of ranks trains on the same global batches.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t images);

/// Images that stand together, such as those of a shard, and are best read together.
struct Runs {
  std::vector<IndexRange> parts;  ///< of all images, in order; none: every image stands alone
  std::int64_t window = 8192;     ///< images within which those of different runs are mixed
};

/// The same of images in runs: the runs in random order, then the images shuffled within every
/// window of that order. So those of a few runs are read at a time, and not all over the disk.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t images,
                                      Runs const& runs);

/// Sorts `values`, which differ, by a random number that each of them has in this epoch.
void shuffle(CounterRandom const& random, std::int64_t epoch, std::span<std::int64_t> values);

/// Complete global batches of an epoch. The images left over at the end of its order are not used
/// in this epoch; another epoch leaves out others. 0 if there are too few for one.
std::int64_t steps_per_epoch(std::int64_t images, std::int64_t global_batch);

/// One of the ranks that share every global batch.
struct RankSlice {
  int rank = 0;
  int ranks = 1;

  /// Its slots in a global batch; the number of ranks must divide the batch.
  IndexRange of_batch(std::int64_t global_batch) const;
  /// Its part of an evaluation, contiguous. Together, the ranks cover every image once; their parts
  /// differ by at most one image.
  IndexRange of_evaluation(std::int64_t images) const;
};

/// Who trains on a part of a global batch, where samples belong to clients.
struct DrawnClient {
  int number = 0;
  std::int64_t samples = 0;  ///< that it has
};

/// One rank's part of the global batch of one step.
struct Share {
  std::int64_t step = 0;
  RankSlice slice;
};

}  // namespace stratagem
