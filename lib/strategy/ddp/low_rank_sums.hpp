#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/work.hpp"
#include "strategy/codes/low_rank_gradients.hpp"
#include "strategy/ddp/gradient_sums.hpp"

namespace stratagem {

/// That each rank sends in a step, and that it holds for factors and for what they lost.
std::int64_t bytes_sent(std::span<LowRankPlan const> buckets, int ranks);
std::int64_t bytes_held(std::span<LowRankPlan const> buckets, std::int64_t elements);

/// Of products of thin matrices, whose factors are all-reduced one after the other. The second of a
/// bucket follows where the next bucket begins or, for the last one, where sums are awaited: the
/// order of collectives is the same on all ranks.
class LowRankSums final : public GradientSums {
 public:
  LowRankSums(std::vector<LowRankPlan> buckets, Compression const& compression,
              StrategyParts const& parts, ParameterLayout const& layout, Communicator& group);

  void begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) override;
  void finish(std::size_t bucket) override;
  std::vector<ParameterState> state() const override;

 private:
  /// Where bucket `half_` has its first sum: begins to send what follows.
  void send_second();
  at::Tensor first_of(std::size_t bucket) const;
  at::Tensor second_of(std::size_t bucket) const;

  std::vector<LowRankPlan> buckets_;
  Communicator& group_;
  ParameterLayout layout_;
  LowRankGradients code_;
  std::vector<std::int64_t> first_begin_, second_begin_;  ///< by bucket, in what is below
  at::Tensor first_;                                      ///< P and plain gradients
  at::Tensor second_;                                     ///< Q
  at::Tensor residual_;                                   ///< [parameters]
  at::Tensor gradients_;                                  ///< of the present step
  std::optional<std::size_t> half_;             ///< the bucket of which only the first is sent
  std::vector<Work> first_sums_, second_sums_;  ///< by bucket
};

}  // namespace stratagem
