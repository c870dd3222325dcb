#pragma once

#include <algorithm>
#include <cstdint>

#include "strategy/fedavg/secure/messages.hpp"
#include "strategy/fedavg/secure/neighbourhood.hpp"

namespace stratagem {

/// What a client sends in a round of a secure sum beside its masked input [B]: as much as all
/// others do.
struct SecureBytes {
  explicit SecureBytes(Neighbourhood const& neighbourhood)
      : keys(PublicKeys::bytes),
        shares(neighbourhood.neighbours() * std::int64_t{SealedShares::bytes}),
        revealed(neighbourhood.members() * std::int64_t{RevealedShare::bytes}) {}

  std::int64_t all() const { return keys + shares + revealed; }
  std::int64_t largest() const { return std::max({keys, shares, revealed}); }

  std::int64_t keys, shares, revealed;
};

}  // namespace stratagem
