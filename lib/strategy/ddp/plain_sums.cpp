#include "strategy/ddp/plain_sums.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "strategy/shared/step_status.hpp"

namespace stratagem {

PlainSums::PlainSums(BucketPlan const& buckets, at::Tensor reduced, Communicator& group)
    : buckets_(buckets.buckets), reduced_(std::move(reduced)), group_(group) {}

void PlainSums::begin(std::size_t bucket, at::Tensor const& /*gradients*/, std::int64_t /*step*/) {
  auto const range = buckets_[bucket].range;
  auto const begin = range.begin == 0 ? 0 : status_room + range.begin;
  works_.push_back(group_.all_reduce(reduced_.narrow(0, begin, status_room + range.end - begin)));
}

void PlainSums::finish(std::size_t bucket) {
  works_[bucket].wait_on_stream();
  if (bucket + 1 == buckets_.size()) works_.clear();
}

}  // namespace stratagem
