#include "params/bucket_plan.hpp"

#include <algorithm>

#include "base/hash/hash.hpp"

namespace stratagem {
namespace {

/// How many of the first blocks form the small last bucket; 0 if buckets are small anyway.
int blocks_of_last_bucket(ParameterLayout const& layout, std::int64_t limit,
                          std::int64_t bucket_elements) {
  if (bucket_elements <= limit) return 0;
  int blocks = 0;
  while (blocks < layout.blocks() &&
         (layout.range(blocks).end <= limit || layout.range(blocks).begin == 0))
    ++blocks;
  return blocks;
}

}  // namespace

BucketPlan make_bucket_plan(ParameterLayout const& layout, std::int64_t bucket_bytes,
                            std::int64_t element_size, std::int64_t last_bytes) {
  auto const wanted = std::max<std::int64_t>(bucket_bytes / element_size, 1);
  int const kept_apart = blocks_of_last_bucket(layout, last_bytes / element_size, wanted);
  BucketPlan plan;
  bool open = false;
  for (int block = layout.blocks() - 1; block >= 0; --block) {
    if (block == kept_apart - 1) open = false;
    auto const range = layout.range(block);
    if (range.size() == 0) continue;
    // The blocks of the last bucket come at the end, and share one bucket of any size.
    if (!open) plan.buckets.push_back({{range.end, range.end}, block, block});
    auto& bucket = plan.buckets.back();
    bucket.range.begin = range.begin;
    bucket.first_block = block;
    open = block < kept_apart || bucket.range.size() < wanted;
  }
  return plan;
}

std::uint64_t BucketPlan::hash() const {
  Hash hash;
  for (auto const& bucket : buckets)
    hash.add(static_cast<std::uint64_t>(bucket.range.begin))
        .add(static_cast<std::uint64_t>(bucket.range.end));
  return hash.value();
}

}  // namespace stratagem
