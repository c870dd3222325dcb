#include "strategy/shared/synchronous.hpp"

#include <utility>

namespace stratagem {

using trace::Phase;

Synchronous::Synchronous(StrategyParts const& parts, Communicator& group, StatusTerms const& terms)
    : parts_(parts), group_(group), terms_(terms), graph_(parts) {}

StepResult Synchronous::step(Batch const& batch, StepOptions const& options) {
  begin(batch, options);
  auto const result = train(batch, options.lr);
  if (!model().update().finite()) model().refuse_gradient(batch.step);
  model().end_step(graph_.keeps());
  return result;
}

void Synchronous::begin(Batch const& batch, StepOptions const& options) {
  ReplicaHashes hashes;
  if (options.compare_replicas) {
    model().gather_replicas();
    parts_.recorder.enter(Phase::optimizer);  // the time counts as that of the state's owner
    hashes = ReplicaHashes(model().replicas());
  }
  auto& status = model().status();
  status.begin(options, std::move(hashes));
  if (graph_.keeps()) status.tell(status.fingerprint(group_.collectives()));
  model().begin_step(batch.step, graph_.keeps());
}

StepResult Synchronous::train(Batch const& batch, double lr) {
  if (model().update().way() == Update::Way::by_range) {
    run(batch, [this, lr] { apply(lr); });
    return agreed(batch);
  }
  if (model().update().way() == Update::Way::guarded) {
    run(batch, [this] {
      if (graph_.keeps()) model().await_sums();
    });
    apply(lr, model().status().refusal());
    return agreed(batch);
  }
  run(batch, [this] { model().await_sums(); });
  auto result = agreed(batch);
  result.skipped = !apply_if_admitted(lr);
  return result;
}

void Synchronous::run(Batch const& batch, std::function<void()> const& rest) {
  graph_.run(batch, model().update().loss_scale(), [this, rest](Batch const& placed) {
    model().status().clear();
    submit(placed);
    rest();
    model().await_status();
  });
  model().status().fetch_sum();
}

void Synchronous::apply(double lr, std::optional<at::Tensor> const& refusal) {
  parts_.recorder.enter(Phase::optimizer);
  model().apply(lr, refusal);
}

bool Synchronous::apply_if_admitted(double lr) {
  parts_.recorder.enter(Phase::optimizer);
  if (!model().update().admit(model().gradient_norm())) return false;
  apply(lr);
  return true;
}

StepResult Synchronous::agreed(Batch const& batch) {
  auto const& status = model().status();
  auto const [result, finite, alike] = status.result(batch, terms_);
  if (!alike) refuse_difference(group_, status.hashes(), batch.step);
  if (!finite) refuse_loss(batch);
  return result;
}

}  // namespace stratagem
