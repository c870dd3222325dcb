#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "params/bucket_plan.hpp"
#include "strategy/codes/low_rank_gradients.hpp"
#include "strategy/codes/sparse_gradients.hpp"
#include "strategy/ddp/coded_piece.hpp"
#include "strategy/ddp/ddp_config.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

/// What DDP has decided before it runs.
struct DdpPlan {
  DdpConfig config;
  BucketPlan buckets;
  std::int64_t element_size = 4;  ///< of gradients [B]
  // Where gradients travel in a code, one of these:
  std::vector<CodedPiece> coded = {};      ///< of blocks
  std::vector<SparseMessage> sparse = {};  ///< by bucket
  std::vector<LowRankPlan> low_rank = {};  ///< by bucket

  /// Of a bucket, where gradients travel in a code.
  std::int64_t coded_bytes(std::size_t bucket) const;
};

StrategyPlan plan_of(DdpConfig const& config, PlanInput const& input);

}  // namespace stratagem
