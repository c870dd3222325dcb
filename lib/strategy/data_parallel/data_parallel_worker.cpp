#include "strategy/data_parallel/data_parallel_worker.hpp"

#include <utility>

#include "strategy/pass/micro_batches.hpp"

namespace stratagem {

DataParallelWorker::DataParallelWorker(std::unique_ptr<DataParallel> model, int micro_batches,
                                       StrategyParts const& parts, Communicator& group)
    : Synchronous(parts, group,
                  {.ranks = group.size(), .reporters = group.size(), .passes = micro_batches}),
      model_(std::move(model)),
      micro_batches_(micro_batches),
      buffers_(make_buffers(parts.model, parts.device, parts.precision.compute)),
      passes_(parts) {}

void DataParallelWorker::submit(Batch const& batch) {
  int number = 0;
  for (auto const& micro : split(batch, micro_batches_)) {
    model_->begin_pass(number++);
    passes_.run(*model_, buffers_, micro, context_of(micro), [this](CrossEntropy const& loss) {
      model_->status().note(loss, passes_.kept());
      model_->begin_backward();
    });
  }
  model_->end_passes();
}

void DataParallelWorker::refuse_loss(Batch const& batch) {
  int block = model_->status().first_bad_block();
  if (!batch.inputs.is_cpu()) {  // nothing was updated: the same pass again shows the block
    passes_.forward(*model_, buffers_, batch.inputs, context_of(batch));
    block = passes_.kept().first_non_finite();
  }
  stratagem::refuse_loss(parts().model, group(), batch.step, block);
}

State DataParallelWorker::state() {
  auto state = model_->state();
  state.buffers = {{group().rank(), buffers_}};
  return state;
}

}  // namespace stratagem
