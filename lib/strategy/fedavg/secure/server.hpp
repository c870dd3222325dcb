#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/fedavg/secure/client.hpp"
#include "strategy/fedavg/secure/messages.hpp"
#include "strategy/fedavg/secure/neighbourhood.hpp"

namespace stratagem {

/// The server's side of a round of a secure sum, or a part of it: it takes the shares of some
/// clients' secrets, and takes out of the sum the masks that these have left there.
class Unmasking {
 public:
  /// `keys`: of all clients. Error(usage) where fewer than the threshold have answered among the
  /// members of some client: its masks would stay.
  Unmasking(Neighbourhood const& neighbourhood, std::int64_t round,
            std::span<PublicKeys const> keys, Answers const& answers);

  /// Error(bad_data) for a share from one who is lost or holds none, at another's point, of a
  /// secret that is not asked for, or that is there already.
  void take(RevealedShare share);

  /// Of one that lives, its own mask; of one that is lost, the masks that the living have with it.
  /// Error(bad_data) where there are fewer shares than the threshold, or where they do not rebuild
  /// the key of a public key.
  void remove_masks(int client, std::span<std::uint32_t> sum) const;

 private:
  void check_living() const;
  crypto::Secret rebuilt(int client) const;

  Neighbourhood neighbourhood_;
  std::int64_t round_;
  std::vector<PublicKeys> keys_;                    ///< by place
  std::vector<bool> lives_;                         ///< by place
  std::vector<std::vector<crypto::Share>> shares_;  ///< by owner
};

}  // namespace stratagem
