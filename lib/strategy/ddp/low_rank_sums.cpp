#include "strategy/ddp/low_rank_sums.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "strategy/codes/compressed.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t number_bytes = sizeof(float);

}  // namespace

std::int64_t bytes_sent(std::span<LowRankPlan const> buckets, int ranks) {
  std::int64_t sum = 0;
  for (auto const& bucket : buckets)
    sum += all_reduce_bytes(number_bytes * bucket.first, ranks) +
           all_reduce_bytes(number_bytes * bucket.second, ranks);
  return sum;
}

std::int64_t bytes_held(std::span<LowRankPlan const> buckets, std::int64_t elements) {
  for (auto const& bucket : buckets) elements += bucket.first + bucket.second;
  return number_bytes * elements;
}

LowRankSums::LowRankSums(std::vector<LowRankPlan> buckets, Compression const& compression,
                         StrategyParts const& parts, ParameterLayout const& layout,
                         Communicator& group)
    : buckets_(std::move(buckets)),
      group_(group),
      layout_(layout),
      code_(compression.matrix_rank, parts.seed) {
  std::int64_t first = 0, second = 0;
  for (auto const& bucket : buckets_) {
    first_begin_.push_back(std::exchange(first, first + bucket.first));
    second_begin_.push_back(std::exchange(second, second + bucket.second));
  }
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  first_ = group_.allocate(first, at::kFloat);
  second_ = group_.allocate(second, at::kFloat);
  residual_ = at::zeros({layout.size()}, at::kFloat);
}

at::Tensor LowRankSums::first_of(std::size_t bucket) const {
  return first_.narrow(0, first_begin_[bucket], buckets_[bucket].first);
}

at::Tensor LowRankSums::second_of(std::size_t bucket) const {
  return second_.narrow(0, second_begin_[bucket], buckets_[bucket].second);
}

void LowRankSums::begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) {
  if (bucket == 0) {
    first_sums_.clear();
    second_sums_.clear();
  }
  if (half_) send_second();
  gradients_ = gradients;
  code_.revive(buckets_[bucket], second_of(bucket), step);
  code_.add(buckets_[bucket], gradients, residual_, second_of(bucket), first_of(bucket));
  first_sums_.push_back(group_.all_reduce(first_of(bucket)));
  half_ = bucket;
}

void LowRankSums::send_second() {
  auto const bucket = *std::exchange(half_, std::nullopt);
  first_sums_[bucket].wait_on_host();
  code_.orthogonalise(buckets_[bucket], first_of(bucket));
  code_.subtract(buckets_[bucket], first_of(bucket), residual_, second_of(bucket));
  second_sums_.push_back(buckets_[bucket].second == 0 ? Work()
                                                      : group_.all_reduce(second_of(bucket)));
}

void LowRankSums::finish(std::size_t bucket) {
  if (half_) send_second();
  second_sums_[bucket].wait_on_host();
  code_.multiply(buckets_[bucket], first_of(bucket), second_of(bucket), gradients_);
}

std::vector<ParameterState> LowRankSums::state() const {
  auto states = of_each_worker(Compression::residual, layout_, residual_, group_);
  ParameterState factors{.kind = std::string(Compression::right_factor), .pieces = {}};
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    std::ranges::move(code_.pieces_of(buckets_[bucket], second_of(bucket)),
                      std::back_inserter(factors.pieces));
  states.push_back(std::move(factors));
  return states;
}

}  // namespace stratagem
