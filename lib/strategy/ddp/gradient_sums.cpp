#include "strategy/ddp/gradient_sums.hpp"

#include "strategy/codes/compressed.hpp"
#include "strategy/ddp/coded_sums.hpp"
#include "strategy/ddp/low_rank_sums.hpp"
#include "strategy/ddp/plain_sums.hpp"
#include "strategy/ddp/sparse_sums.hpp"

namespace stratagem {

std::unique_ptr<GradientSums> make_gradient_sums(DdpPlan const& plan, StrategyParts const& parts,
                                                 ParameterLayout const& layout,
                                                 at::Tensor const& reduced, Communicator& group) {
  auto const& compression = plan.config.compression;
  if (!compression.on()) return std::make_unique<PlainSums>(plan.buckets, reduced, group);
  refuse_codes_on_gpu(parts.device);
  if (compression.sparse())
    return std::make_unique<SparseSums>(plan.sparse, compression, parts, layout, group);
  if (compression.low_rank())
    return std::make_unique<LowRankSums>(plan.low_rank, compression, parts, layout, group);
  return std::make_unique<CodedSums>(plan.coded, compression, parts, layout, group);
}

}  // namespace stratagem
