#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/error.hpp"
#include "strategy/fedavg/secure/client.hpp"
#include "strategy/fedavg/secure/neighbourhood.hpp"
#include "strategy/fedavg/secure/secure_bytes.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// The clients of a rank in a round of a secure sum, and the rank's part of the server: it takes
/// the masks of its own clients out, with the shares that all reveal. Carries messages from all to
/// all. Where one is refused, the round goes on without what it said, as collectives must, and
/// failure() says why.
class SecureRound {
 public:
  /// `messages`: room for a message of the largest kind of each client, uint8. References outlive
  /// the round. Collective: spreads keys and shares.
  SecureRound(Neighbourhood const& neighbourhood, StrategyParts const& parts, at::Tensor messages,
              std::int64_t round);

  /// `codes`: int32, of one of this rank's clients.
  void mask(std::size_t client, at::Tensor const& codes);
  /// Those who live reveal shares, and `sum`, int32, of what this rank's clients have sent, becomes
  /// that whose total over the ranks has no masks. Collective.
  void unmask(Answers const& answers, at::Tensor const& sum);
  std::optional<Error> const& failure() const { return failure_; }

 private:
  using Write = std::function<void(std::size_t client, std::span<std::uint8_t> message)>;

  /// Messages of all clients, in the order of their places.
  std::vector<std::uint8_t> spread(std::int64_t bytes, Write const& write);
  void exchange_keys();
  void exchange_shares();
  std::vector<std::uint8_t> exchange_revealed(Answers const& answers);
  int place_of(std::size_t client) const { return first_ + static_cast<int>(client); }
  bool is_own(int place) const { return place >= first_ && place < first_ + count_; }
  /// Unless something has failed.
  void attempt(std::function<void()> const& act);

  Neighbourhood neighbourhood_;
  SecureBytes bytes_;
  StrategyParts const& parts_;
  at::Tensor messages_;
  std::int64_t round_;
  int first_ = 0, count_ = 0;  ///< places of this rank's clients
  std::vector<SecureClient> clients_;
  std::vector<PublicKeys> keys_;
  std::optional<Error> failure_;
};

}  // namespace stratagem
