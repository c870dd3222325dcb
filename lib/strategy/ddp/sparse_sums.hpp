#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/work.hpp"
#include "strategy/codes/sparse_gradients.hpp"
#include "strategy/ddp/gradient_sums.hpp"

namespace stratagem {

/// That each rank sends in a step, and that it holds for messages and for what it has not sent yet.
std::int64_t bytes_sent(Compression const& compression, std::span<SparseMessage const> messages,
                        int ranks);
std::int64_t bytes_held(Compression const& compression, std::span<SparseMessage const> messages,
                        int ranks, std::int64_t elements);

/// Of a few elements of each tensor: places and numbers of each rank are gathered by all, which add
/// them up in rank order; or, where places are the same on all ranks, numbers are all-reduced.
class SparseSums final : public GradientSums {
 public:
  SparseSums(std::vector<SparseMessage> messages, Compression const& compression,
             StrategyParts const& parts, ParameterLayout const& layout, Communicator& group);

  void begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) override;
  void finish(std::size_t bucket) override;
  std::vector<ParameterState> state() const override;

 private:
  bool gathers() const { return gathered_.defined(); }
  int ranks() const { return group_.size(); }
  /// Where a rank's message is, or the sum of all.
  at::Tensor room(std::size_t bucket, int rank) const;

  std::vector<SparseMessage> messages_;  ///< by bucket
  Communicator& group_;
  ParameterLayout layout_;
  SparseGradients code_;
  SparseMemory memory_;
  std::vector<std::int64_t> first_byte_;  ///< by bucket, of all before it, of one rank
  at::Tensor gathered_;   ///< messages of all ranks, one rank after the other in each bucket
  at::Tensor reduced_;    ///< or numbers, bucket by bucket
  at::Tensor gradients_;  ///< of the present step
  std::int64_t step_ = 0;
  std::vector<Work> works_;  ///< by bucket
};

}  // namespace stratagem
