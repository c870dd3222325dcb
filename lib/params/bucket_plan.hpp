#pragma once

#include <cstdint>
#include <vector>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// Consecutive whole blocks whose gradients travel together.
struct Bucket {
  FlatRange range;
  int first_block = 0;  ///< the one whose backward pass comes last: then the bucket is complete
  int last_block = 0;
};

/// In which pieces, and in which order, gradients are reduced: a value, the same on all ranks.
struct BucketPlan {
  std::vector<Bucket> buckets;  ///< in launch order, from the last block to the first

  std::uint64_t hash() const;
};

/// Buckets in the order in which the backward pass completes blocks. One closes when it holds
/// `bucket_bytes`; blocks are never cut. What comes last finds no computation to hide behind, so it
/// is kept apart and small: the first blocks, up to `last_bytes` of them (but at least one).
BucketPlan make_bucket_plan(ParameterLayout const& layout, std::int64_t bucket_bytes,
                            std::int64_t element_size,
                            std::int64_t last_bytes = std::int64_t{1} << 20);

}  // namespace stratagem
