#include "strategy/ps/offline/local_pass.hpp"

#include <ATen/ATen.h>

#include "strategy/shared/cross_entropy.hpp"
#include "strategy/shared/micro_batches.hpp"

namespace stratagem {

LocalPass::LocalPass(StrategyParts const& parts, int micro_batches)
    : parts_(parts),
      micro_batches_(micro_batches),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      gradients_(parts.allocate(gpu::MemoryCategory::gradients, replica_.layout().size())),
      tape_(parts.model.blocks, parts.recompute) {
  for (int block = 0; block < tape_.blocks(); ++block)
    views_.push_back(views_of(gradients_, replica_.layout(), block));
}

LocalPass::Result LocalPass::run(Batch const& batch, Buffers const& buffers, double loss_scale) {
  replica_.refresh({0, replica_.layout().size()});
  Result result;
  auto write = GradWrite::overwrite;
  for (auto const& micro : split(batch, micro_batches_)) {
    auto const x =
        forward(replica_, buffers, tape_, micro.inputs, parts_.context_of(micro, loss_scale));
    auto const loss = cross_entropy(x, micro.labels, loss_scale);
    result.loss += loss.loss.item<double>() / micro_batches_;
    result.correct += loss.correct.item<std::int64_t>();
    auto gradient = loss.gradient;
    for (int block = tape_.blocks() - 1; block >= 0; --block)
      gradient = tape_.backward(block, gradient, views_[static_cast<std::size_t>(block)], write);
    write = GradWrite::accumulate;
  }
  return result;
}

}  // namespace stratagem
