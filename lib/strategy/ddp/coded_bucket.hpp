#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/compression.hpp"
#include "params/bucket_plan.hpp"

namespace stratagem {

/// How the gradients of a bucket travel in a code: in slices of whole blocks, one per rank, which
/// adds it up. Every code of a slice has room for as many blocks.
struct CodedBucket {
  FlatRange range;
  std::int64_t slice = 0;  ///< elements of a slice; the last ones may be shorter or empty
  std::int64_t wire = 0;   ///< bytes of its code

  FlatRange slice_of(int rank) const;
};

/// In the order of the buckets.
std::vector<CodedBucket> coded_buckets(BucketPlan const& buckets, Code code, int ranks);

/// That each rank sends in a step, and that it holds for codes and, with feedback, for residuals.
std::int64_t bytes_sent(std::span<CodedBucket const> buckets, int ranks);
std::int64_t bytes_held(std::span<CodedBucket const> buckets, bool error_feedback, int ranks,
                        std::int64_t elements);

}  // namespace stratagem
