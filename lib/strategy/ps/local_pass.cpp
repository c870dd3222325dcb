#include "strategy/ps/local_pass.hpp"

#include <ATen/ATen.h>

#include "strategy/cross_entropy.hpp"

namespace stratagem {

LocalPass::LocalPass(StrategyParts const& parts)
    : parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      gradients_(parts.allocate(gpu::MemoryCategory::gradients, replica_.layout().size())),
      tape_(parts.model.blocks, parts.recompute) {
  for (int block = 0; block < tape_.blocks(); ++block)
    views_.push_back(views_of(gradients_, replica_.layout(), block));
}

LocalPass::Result LocalPass::run(Batch const& batch, Buffers const& buffers) {
  replica_.refresh({0, replica_.layout().size()});
  auto const x = forward(replica_, buffers, tape_, batch.images, parts_.context_of(batch));
  auto const loss = cross_entropy(x, batch.labels);
  auto gradient = loss.gradient;
  for (int block = tape_.blocks() - 1; block >= 0; --block)
    gradient =
        tape_.backward(block, gradient, views_[static_cast<std::size_t>(block)], Landing::store);
  return {.loss = loss.loss.item<double>(), .correct = loss.correct.item<std::int64_t>()};
}

}  // namespace stratagem
