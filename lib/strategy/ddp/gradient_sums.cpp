#include "strategy/ddp/gradient_sums.hpp"

#include "strategy/ddp/coded_sums.hpp"
#include "strategy/ddp/low_rank_sums.hpp"
#include "strategy/ddp/sparse_sums.hpp"
#include "strategy/shared/compressed.hpp"

namespace stratagem {

std::unique_ptr<GradientSums> make_gradient_sums(DdpPlan const& plan, StrategyParts const& parts,
                                                 ParameterLayout const& layout) {
  auto const& compression = plan.config.compression;
  if (!compression.on()) return nullptr;
  refuse_codes_on_gpu(parts.device);
  if (compression.sparse())
    return std::make_unique<SparseSums>(plan.sparse, compression, parts, layout);
  if (compression.low_rank())
    return std::make_unique<LowRankSums>(plan.low_rank, compression, parts, layout);
  return std::make_unique<CodedSums>(plan.coded, compression, parts, layout);
}

}  // namespace stratagem
