#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "strategy/gossip/gossip_plan.hpp"
#include "strategy/gossip/tidings.hpp"

namespace stratagem {

/// Mixes what workers have with what their neighbours have: x_i <- p_ii x_i + sum over j of p_ij
/// x_j, in the order of senders j, so the bits do not depend on which ranks play them. Their
/// weights of push-sum are mixed alike. A message is sent once to each rank that plays a neighbour;
/// workers of one rank need none. Receives are posted before sends, as many as there is room for,
/// and sends wait for nothing: no order of ranks can block.
class Mixer {
 public:
  /// What lies behind a worker's x in its message: weight and tidings.
  static constexpr std::int64_t tail = 1 + Tidings::size;

  /// `inbox`: plan.inbox messages.
  Mixer(GossipPlan const& plan, Communicator& communicator, std::vector<at::Tensor> inbox);

  /// `x`: [n] of each worker of this rank; `messages`: [n + tail] each, overwritten.
  void mix(std::int64_t mixing, std::span<at::Tensor const> x,
           std::span<at::Tensor const> messages);

  /// Of push-sum, by worker of this rank; 1 at first.
  std::vector<double>& weights() { return weights_; }
  Tidings& tidings() { return tidings_; }

 private:
  int first() const { return communicator_.rank() * plan_.workers_of_rank(); }
  /// A worker's share for others leaves for its message.
  void write(int worker, at::Tensor const& x, at::Tensor const& message);
  std::vector<Work> send(std::int64_t mixing, std::span<at::Tensor const> messages);
  /// Adds what `sender` says to those that hear it.
  void hear(int sender, std::int64_t mixing, at::Tensor const& message,
            std::span<at::Tensor const> x);

  GossipPlan plan_;
  Communicator& communicator_;
  std::vector<at::Tensor> inbox_;
  std::vector<double> weights_;
  Tidings tidings_;
};

}  // namespace stratagem
