#include "strategy/serial/emulated_model.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include "gpu/memory.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {
namespace {

ReplicaGradients make_gradients(Replica const& replica, gpu::Device const& device) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, device);
  return {replica, at::zeros_like(replica.flat())};
}

}  // namespace

EmulatedModel::EmulatedModel(SerialConfig const& config, StrategyParts const& parts)
    : replica_(parts.model, parts.precision.compute, parts.device, parts.seed,
               config.parameter_compression),
      sum_(make_gradients(replica_, parts.device)),
      sums_(make_worker_sums(config, parts, replica_.layout())),
      status_(at::zeros({status_room}, replica_.flat().options())),
      update_(optimizer_of(config.compression, parts.optimizer), parts.precision,
              config.emulate_ranks, config.micro_batches, all_elements(replica_.layout()),
              parts.device) {
  if (config.groups > 1) group_.emplace(make_gradients(replica_, parts.device));
  if (config.workers_of_group() > 1) own_.emplace(make_gradients(replica_, parts.device));
  if (config.sums_micro_batches()) micro_.emplace(make_gradients(replica_, parts.device));
}

void EmulatedModel::apply(double lr, std::optional<at::Tensor> const& refusal) {
  update_.begin();
  update_.apply(all(), replica_, sum_.flat(), lr, refusal);
}

void EmulatedModel::refuse_gradient(std::int64_t step) const {
  throw AgreedError(bad_gradient(step, "summed over all ranks", replica_.views(sum_.flat(), "")));
}

State EmulatedModel::state() {
  State state{.of_parameters = replica_.state(update_.state()), .counters = update_.counters()};
  std::ranges::move(sums_->state(), std::back_inserter(state.of_parameters));
  return state;
}

}  // namespace stratagem
