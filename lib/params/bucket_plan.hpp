#pragma once

#include <cstdint>
#include <vector>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// Consecutive whole blocks whose gradients are reduced together.
struct Bucket {
  FlatRange range;
  int first_block = 0;  ///< its backward pass comes last and completes the bucket
  int last_block = 0;
};

/// How gradients are divided for reduction, and in which order: a value, the same on all ranks.
struct BucketPlan {
  std::vector<Bucket> buckets;  ///< in launch order, from the last block to the first

  std::uint64_t hash() const;
};

/// Buckets in the order in which the backward pass completes blocks. A bucket is closed when it
/// holds `bucket_bytes`; blocks are never divided. There is no computation left to hide the last
/// bucket, so it is small: the first blocks, up to `last_bytes` of them (but at least one).
BucketPlan make_bucket_plan(ParameterLayout const& layout, std::int64_t bucket_bytes,
                            std::int64_t element_size,
                            std::int64_t last_bytes = std::int64_t{1} << 20);

}  // namespace stratagem
