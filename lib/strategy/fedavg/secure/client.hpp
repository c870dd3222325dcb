#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "crypto/secret.hpp"
#include "strategy/fedavg/answers.hpp"
#include "strategy/fedavg/secure/messages.hpp"
#include "strategy/fedavg/secure/neighbourhood.hpp"

namespace stratagem {

/// A client in one round of a secure sum (Bonawitz et al., Practical secure aggregation for
/// privacy-preserving machine learning, CCS 2017, figure 4), against a server that keeps to the
/// protocol. Functions are called in this order, once each. What a message must not say is an
/// Error(bad_data).
class SecureClient {
 public:
  /// Draws all its secrets.
  SecureClient(Neighbourhood const& neighbourhood, std::int64_t round, int place);

  PublicKeys const& advertise() const { return own_; }
  /// Of its two secrets, one message for each neighbour. `keys`: of all clients.
  std::vector<SealedShares> share(std::span<PublicKeys const> keys);
  /// Keeps those of its neighbours that are sealed for this client; `shares`: of all clients.
  void receive(std::span<SealedShares const> shares);
  /// input + PRG(b) + sum of masks with neighbours, modulo 2^32.
  void mask(std::span<std::uint32_t> input) const;
  /// Of each member one share: of b where it lives, of its mask key where it is lost. Never of
  /// both: a client that is named as both is refused, and so are a second call, and a sum of fewer
  /// than the threshold.
  std::vector<RevealedShare> reveal(Answers const& answers);

 private:
  Neighbourhood neighbourhood_;
  std::int64_t round_;
  PublicKeys own_;
  crypto::Secret sealing_, masking_;             ///< keys
  crypto::Secret own_mask_;                      ///< b
  std::vector<PublicKeys> keys_;                 ///< of all, by place
  std::vector<crypto::Secret> seals_;            ///< keys of pairs, by point; unused at its own
  std::vector<std::optional<HeldShares>> held_;  ///< by its owner's point
  bool revealed_ = false;
};

}  // namespace stratagem
