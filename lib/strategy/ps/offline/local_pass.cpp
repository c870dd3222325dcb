#include "strategy/ps/offline/local_pass.hpp"

#include <ATen/ATen.h>

namespace stratagem {

LocalPass::LocalPass(StrategyParts const& parts, int micro_batches)
    : parts_(parts),
      micro_batches_(micro_batches),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      store_(replica_, parts.allocate(gpu::MemoryCategory::gradients, replica_.layout().size())),
      passes_(parts) {}

LocalPass::Result LocalPass::run(Batch const& batch, Buffers const& buffers, double loss_scale) {
  replica_.refresh({0, replica_.layout().size()});
  Result result;
  passes_.run_all(
      store_, buffers, batch, micro_batches_,
      [&](Batch const& micro) { return parts_.context_of(micro, loss_scale); },
      [&](CrossEntropy const& loss) {
        result.loss += loss.loss.item<double>() / micro_batches_;
        result.correct += loss.correct.item<std::int64_t>();
      });
  return result;
}

}  // namespace stratagem
