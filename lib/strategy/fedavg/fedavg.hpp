#pragma once

#include <optional>
#include <vector>

#include "base/error.hpp"
#include "strategy/fedavg/answers.hpp"
#include "strategy/fedavg/fedavg_plan.hpp"
#include "strategy/fedavg/fixed_point.hpp"
#include "strategy/fedavg/secure/secure_round.hpp"
#include "strategy/pass/passes.hpp"
#include "strategy/pass/replica_gradients.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Federated averaging. A step is a round: with weights n_k, the samples that client k has,
///   d_k = what local_steps steps from p make of p, minus p
///   d   = sum n_k d_k / sum n_k, over the clients drawn
///   m  <- server_momentum m + d;  p <- p + server_lr m
/// Clients that are lost train, too, but are in neither sum.
/// The sum is one of integers, see FixedPoint: it does not depend on who plays which client. A rank
/// plays its clients one after the other, with one set of parameters and an optimizer that begins
/// anew with each; nothing is kept for a client that is not drawn. Running statistics belong to the
/// places of a round, whose mean is evaluated, as that of workers in other strategies.
class FedAvg final : public Strategy {
 public:
  FedAvg(FedAvgPlan const& plan, StrategyParts const& parts);

  StepResult step(Batch const& batch, StepOptions const& options) override;
  at::Tensor predict(at::Tensor const& images, Buffers const& statistics) override {
    return passes_.predict(store_, statistics, images);
  }
  State state() override;
  void state_replaced() override { replica_.refresh(all()); }
  /// Names the share of changes that were clipped, where these are many.
  std::string report() override;

 private:
  FlatRange all() const { return {0, replica_.layout().size()}; }
  /// What other ranks hold, too.
  NamedTensors replicas() const;
  OptimizerState kept() const;
  /// Of a place of this rank, among all of a round.
  int number_of(std::size_t place) const {
    return parts_.world.all().rank() * plan_.clients_of_rank() + static_cast<int>(place);
  }
  /// A new one, that has seen nothing.
  void begin_optimizer();
  void train(std::size_t place, DrawnClient const& client, Batch const& share, double lr);
  /// The passes of one of its steps.
  void pass(std::size_t place, DrawnClient const& client, Batch const& of_step);
  /// Where the server shall see sums alone: the clients of this rank as parties of a secure sum.
  std::optional<SecureRound> begin_secure(std::int64_t round) const;
  /// Adds what the client has made of the parameters to the sum, masked where that is secure.
  void add_change(std::size_t place, DrawnClient const& client, FixedPoint const& codes,
                  std::int64_t step, std::optional<SecureRound>& secure);
  /// Sums over all ranks, and lets them agree. Ends the run where one of them cannot continue.
  StepResult exchange(Batch const& batch);
  /// `samples`: of all whose changes are in the sum.
  void step_of_server(FixedPoint const& codes, std::int64_t samples);

  FedAvgPlan plan_;
  StrategyParts parts_;
  Replica replica_;               ///< of the server between rounds, of a client within
  std::optional<Update> update_;  ///< of the client
  at::Tensor begin_;              ///< the parameters that a round begins with
  at::Tensor momentum_;           ///< m; undefined without
  at::Tensor gradient_;           ///< of the client; then its change, and the mean of all
  at::Tensor codes_, sum_;        ///< int32
  at::Tensor messages_;           ///< of a secure sum, bytes; undefined without
  ReplicaGradients store_;        ///< gradient_, and the parameters
  std::vector<Buffers> buffers_;  ///< by place of this rank
  StepStatus status_;
  Passes passes_;
  std::int64_t clipped_ = 0, coded_ = 0;  ///< elements of this rank since the last report
  std::optional<Error> failure_;          ///< why this rank cannot continue, until all know
};

}  // namespace stratagem
