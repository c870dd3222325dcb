#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/compression.hpp"
#include "params/bucket_plan.hpp"

namespace stratagem {

/// Gradients of a bucket that travel in a code together: in slices of whole blocks, one per rank,
/// which adds it up. Every code of a slice has room for as many blocks. While one piece is added
/// up, the next one travels.
struct CodedPiece {
  std::size_t bucket = 0;
  FlatRange range;
  std::int64_t slice = 0;  ///< elements of a slice; the last ones may be shorter or empty
  std::int64_t wire = 0;   ///< bytes of its code

  FlatRange slice_of(int rank) const;
};

/// In the order of the buckets; of at most a MiB, or more if slices were small.
std::vector<CodedPiece> coded_pieces(BucketPlan const& buckets, Code code, int ranks);

/// That each rank sends in a step, and that it holds for codes and, with feedback, for residuals.
std::int64_t bytes_sent(std::span<CodedPiece const> pieces, int ranks);
std::int64_t bytes_held(std::span<CodedPiece const> pieces, bool error_feedback, int ranks,
                        std::int64_t elements);

}  // namespace stratagem
