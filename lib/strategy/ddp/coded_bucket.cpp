#include "strategy/ddp/coded_bucket.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"

namespace stratagem {

FlatRange CodedBucket::slice_of(int rank) const {
  auto const begin = std::min(range.begin + rank * slice, range.end);
  return {begin, std::min(begin + slice, range.end)};
}

std::vector<CodedBucket> coded_buckets(BucketPlan const& buckets, Code code, int ranks) {
  std::vector<CodedBucket> coded;
  for (auto const& bucket : buckets.buckets) {
    auto const blocks = ceil_div(ceil_div(bucket.range.size(), ranks), block_elements);
    coded.push_back({bucket.range, blocks * block_elements, wire_bytes(code, blocks)});
  }
  return coded;
}

std::int64_t bytes_sent(std::span<CodedBucket const> buckets, int ranks) {
  std::int64_t sum = 0;
  for (auto const& bucket : buckets) sum += 2 * (ranks - 1) * bucket.wire;
  return sum;
}

std::int64_t bytes_held(std::span<CodedBucket const> buckets, bool error_feedback, int ranks,
                        std::int64_t elements) {
  std::int64_t sum = error_feedback ? elements * std::int64_t{sizeof(float)} : 0;
  for (auto const& bucket : buckets) {
    sum += 3 * ranks * bucket.wire;
    if (error_feedback) sum += bucket.slice * std::int64_t{sizeof(float)};
  }
  return sum;
}

}  // namespace stratagem
