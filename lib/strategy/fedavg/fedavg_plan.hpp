#pragma once

#include "strategy/fedavg/fedavg_config.hpp"
#include "strategy/fedavg/secure/neighbourhood.hpp"
#include "strategy/fedavg/secure/secure_bytes.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

/// What federated averaging has decided before it runs.
struct FedAvgPlan {
  FedAvgConfig config;
  int drawn = 1;  ///< clients of a round; rank r plays those from r clients_of_rank() on
  int ranks = 1;
  std::int64_t exchange_bytes = 0;  ///< sent by each rank for a round, on average

  int clients_of_rank() const { return drawn / ranks; }
  /// Forward and backward, of all clients of a rank in a round.
  int passes_of_rank() const {
    return clients_of_rank() * config.local_steps * config.micro_batches;
  }
  bool has_momentum() const { return config.server_momentum > 0; }
  bool is_secure() const { return config.secure == SecureSum::pairwise; }
  /// Of a secure sum.
  Neighbourhood neighbourhood() const { return {drawn, config.neighbours, config.threshold}; }
  /// Of a secure sum: a message of the largest kind of each client of a round [B].
  std::int64_t message_room() const { return drawn * SecureBytes(neighbourhood()).largest(); }
};

/// Error(usage) where drawn clients cannot be dealt to the ranks evenly or are more than there are,
/// where too many of them are lost, or where a secure sum would protect none of them or could not
/// be unmasked; and naming what goes by the gradients of all: clipping, loss scaling, sums in place
/// of means. Error(environment) for a secure sum in a build without OpenSSL.
StrategyPlan plan_of(FedAvgConfig const& config, PlanInput const& input);
/// Error(usage) where the drawn clients have so many samples together that sums, which are weighted
/// by these, leave a change less than FixedPoint::least_bits.
void check_weights(FedAvgPlan const& plan, std::int64_t samples);

}  // namespace stratagem
