#include "strategy/shared/worker_plan.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/shared/gradient_scale.hpp"
#include "strategy/shared/step_status.hpp"

namespace stratagem {

void refuse_with(std::string_view strategy, std::string const& what, std::string const& why,
                 std::string const& cure) {
  throw Error(ExitCode::usage, str(what, " with strategy ", strategy), why, cure);
}

int dealt_workers(std::string_view strategy, int configured, int ranks) {
  if (configured % ranks != 0)
    refuse_with(strategy, str("strategy.workers: ", configured, " workers on ", ranks, " ranks"),
                "each rank plays equally many",
                str("take a multiple of ", ranks, ", or 0 for one on each rank"));
  return configured > 0 ? configured : ranks;
}

void refuse_what_needs_all_gradients(std::string_view strategy, PlanInput const& input) {
  std::string const why = "a worker that steps on its own does not know the others' gradients";
  if (input.optimizer.clip_norm > 0)
    refuse_with(strategy, "optimizer.clip_norm", why, "set it to 0, or take strategy ddp");
  if (input.optimizer.reduction == Reduction::sum)
    refuse_with(strategy, "optimizer.reduction: sum", why,
                "take mean, with optimizer.lr_scaling: linear");
  if (scales_loss(input.precision))
    refuse_with(strategy, "precision.loss_scale: dynamic", why,
                "set it to none, or take strategy ddp");
}

gpu::MemoryUse memory_of_workers(StrategyPlan const& of_replicas, int workers, int replicas) {
  auto memory = of_replicas.memory;
  memory[gpu::MemoryCategory::parameters] *= replicas;
  memory[gpu::MemoryCategory::optimizer] *= replicas;
  memory[gpu::MemoryCategory::gradients] *= workers;
  memory[gpu::MemoryCategory::gradients] += status_room * of_replicas.element_size;
  memory[gpu::MemoryCategory::buffers] *= workers;
  return memory;
}

}  // namespace stratagem
