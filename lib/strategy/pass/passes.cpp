#include "strategy/pass/passes.hpp"

#include "strategy/pass/micro_batches.hpp"

namespace stratagem {

using trace::Phase;

Passes::Passes(StrategyParts const& parts)
    : recorder_(parts.recorder),
      evaluation_(parts.evaluation()),
      tape_(parts.model.blocks, parts.recompute),
      pass_(tape_.begin()) {}

void Passes::run(BlockStore& store, Buffers const& buffers, Batch const& micro,
                 Context const& context, Noted const& noted) {
  auto const logits = forward(store, buffers, micro.inputs, context);
  auto const loss = cross_entropy(logits, micro.labels, context.loss_scale);
  noted(loss);
  backward(store, loss.gradient);
}

void Passes::run_all(ReplicaGradients& store, Buffers const& buffers, Batch const& share,
                     int micro_batches,
                     std::function<Context(Batch const& micro)> const& context_of,
                     Noted const& noted) {
  store.write(GradWrite::overwrite);
  for (auto const& micro : split(share, micro_batches)) {
    run(store, buffers, micro, context_of(micro), noted);
    store.write(GradWrite::accumulate);
  }
}

at::Tensor Passes::forward(BlockStore& store, Buffers const& buffers, at::Tensor const& inputs,
                           Context const& context) {
  at::Tensor x = inputs;
  for (int block = 0; block < tape_.blocks(); ++block) {
    auto const parameters = store.unshard(block, Direction::forward);
    recorder_.enter(Phase::forward);
    x = tape_.forward(pass_, block, x,
                      {parameters, buffers[static_cast<std::size_t>(block)], context});
    store.reshard(block, Direction::forward);
  }
  return x;
}

void Passes::backward(BlockStore& store, at::Tensor gradient) {
  for (int block = tape_.blocks() - 1; block >= 0; --block) {
    store.unshard(block, Direction::backward);
    auto const [tensors, write] = store.gradients(block);
    recorder_.enter(Phase::backward);
    gradient = tape_.backward(pass_, block, gradient, tensors, write);
    store.landed(block);
    store.reshard(block, Direction::backward);
  }
}

at::Tensor Passes::predict(BlockStore& store, Buffers const& statistics, at::Tensor const& inputs) {
  at::Tensor x = inputs;
  for (int block = 0; block < tape_.blocks(); ++block) {
    auto const parameters = store.unshard(block, Direction::inference);
    x = tape_.infer(pass_, block, x,
                    {parameters, statistics[static_cast<std::size_t>(block)], evaluation_});
    store.reshard(block, Direction::inference);
  }
  return x;
}

}  // namespace stratagem
