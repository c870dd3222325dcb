#include "strategy/strategy_parts.hpp"

#include "strategy/state/model_layout.hpp"

namespace stratagem {

at::Tensor StrategyParts::allocate(gpu::MemoryCategory category, std::int64_t numel) const {
  gpu::MemoryScope const scope(category, device);
  return world.all().allocate(numel, master_type(precision.compute));
}

}  // namespace stratagem
