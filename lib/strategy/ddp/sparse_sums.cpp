#include "strategy/ddp/sparse_sums.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include "strategy/codes/compressed.hpp"

namespace stratagem {
namespace {

std::int64_t bytes_of(std::span<SparseMessage const> messages) {
  std::int64_t sum = 0;
  for (auto const& message : messages) sum += message.bytes;
  return sum;
}

std::span<std::byte> bytes_in(at::Tensor const& room) {
  return {data_of(room), static_cast<std::size_t>(stratagem::bytes_of(room))};
}

}  // namespace

std::int64_t bytes_sent(Compression const& compression, std::span<SparseMessage const> messages,
                        int ranks) {
  std::int64_t sum = 0;
  for (auto const& message : messages)
    sum += compression.places_travel() ? (ranks - 1) * message.bytes
                                       : all_reduce_bytes(message.bytes, ranks);
  return sum;
}

std::int64_t bytes_held(Compression const& compression, std::span<SparseMessage const> messages,
                        int ranks, std::int64_t elements) {
  auto const memories =
      (compression.error_feedback ? 1 : 0) + (compression.momentum_correction ? 1 : 0);
  return bytes_of(messages) * (compression.places_travel() ? ranks : 1) +
         memories * elements * std::int64_t{sizeof(float)};
}

SparseSums::SparseSums(std::vector<SparseMessage> messages, Compression const& compression,
                       StrategyParts const& parts, ParameterLayout const& layout,
                       Communicator& group)
    : messages_(std::move(messages)),
      group_(group),
      layout_(layout),
      code_(compression, parts.optimizer, parts.seed),
      memory_([&] {
        gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
        return SparseMemory(compression, layout);
      }()) {
  std::int64_t bytes = 0;
  for (auto const& message : messages_) {
    first_byte_.push_back(bytes);
    bytes += message.bytes;
  }
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  if (compression.places_travel())
    gathered_ = group_.allocate(ranks() * bytes, at::kByte);
  else
    reduced_ = group_.allocate(bytes / std::int64_t{sizeof(float)}, at::kFloat);
}

at::Tensor SparseSums::room(std::size_t bucket, int rank) const {
  auto const bytes = messages_[bucket].bytes;
  if (gathers()) return gathered_.narrow(0, ranks() * first_byte_[bucket] + rank * bytes, bytes);
  constexpr std::int64_t number = sizeof(float);
  return reduced_.narrow(0, first_byte_[bucket] / number, bytes / number);
}

void SparseSums::begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) {
  if (bucket == 0) works_.clear();
  gradients_ = gradients;
  step_ = step;
  auto const own = room(bucket, group_.rank());
  code_.encode(messages_[bucket], numbers_of(gradients), memory_, step, bytes_in(own));
  if (!gathers()) {
    works_.push_back(group_.all_reduce(own));
    return;
  }
  auto const bytes = messages_[bucket].bytes;
  auto const all = gathered_.narrow(0, ranks() * first_byte_[bucket], ranks() * bytes);
  works_.push_back(group_.all_gather(all, own));
}

void SparseSums::finish(std::size_t bucket) {
  works_[bucket].wait_on_host();
  auto const& message = messages_[bucket];
  gradients_.narrow(0, message.range.begin, message.range.size()).zero_();
  for (int rank = 0; rank < (gathers() ? ranks() : 1); ++rank)
    code_.add(message, bytes_in(room(bucket, rank)), step_, numbers_of(gradients_));
}

std::vector<ParameterState> SparseSums::state() const {
  std::vector<ParameterState> states;
  for (auto const& [kind, own] : kinds_of(memory_))
    std::ranges::move(of_each_worker(kind, layout_, own, group_), std::back_inserter(states));
  return states;
}

}  // namespace stratagem
