#include "strategy/ddp/coded_piece.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"

namespace stratagem {

FlatRange CodedPiece::slice_of(int rank) const {
  auto const begin = std::min(range.begin + rank * slice, range.end);
  return {begin, std::min(begin + slice, range.end)};
}

std::vector<CodedPiece> coded_pieces(BucketPlan const& buckets, Code code, int ranks) {
  constexpr std::int64_t usual = 1 << 18, least_slice = 1 << 15;  // elements
  auto const most = std::max(usual, ranks * least_slice);
  std::vector<CodedPiece> pieces;
  for (std::size_t bucket = 0; bucket < buckets.buckets.size(); ++bucket) {
    auto const& whole = buckets.buckets[bucket].range;
    for (auto begin = whole.begin; begin < whole.end; begin += most) {
      FlatRange const range{begin, std::min(begin + most, whole.end)};
      auto const blocks = ceil_div(ceil_div(range.size(), ranks), block_elements);
      pieces.push_back({bucket, range, blocks * block_elements, wire_bytes(code, blocks)});
    }
  }
  return pieces;
}

std::int64_t bytes_sent(std::span<CodedPiece const> pieces, int ranks) {
  std::int64_t sum = 0;
  for (auto const& piece : pieces) sum += 2 * (ranks - 1) * piece.wire;
  return sum;
}

std::int64_t bytes_held(std::span<CodedPiece const> pieces, bool error_feedback, int ranks,
                        std::int64_t elements) {
  std::int64_t sum = error_feedback ? elements * std::int64_t{sizeof(float)} : 0;
  for (auto const& piece : pieces) {
    sum += 3 * ranks * piece.wire;
    if (error_feedback) sum += piece.slice * std::int64_t{sizeof(float)};
  }
  return sum;
}

}  // namespace stratagem
