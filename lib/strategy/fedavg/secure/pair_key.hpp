#pragma once

#include <cstdint>
#include <span>

#include "crypto/secret.hpp"
#include "strategy/fedavg/secure/messages.hpp"

namespace stratagem {

/// What the keys of a pair of clients are for.
enum class KeyUse { sealing, masking };

/// The key that two clients have in common for a use in a round: HKDF of what X25519 makes of their
/// keys for it, with use, round, places and public keys. `own`: the secret of `of_own`.
/// Error(bad_data) where the other's key is a point of low order.
crypto::Secret pair_key(KeyUse use, std::int64_t round, crypto::Secret const& own,
                        PublicKeys const& of_own, PublicKeys const& other);

/// Adds what a client adds to its input for another: +PRG for one at a later place, -PRG for one at
/// an earlier one, so that a pair's two cancel.
void add_pair_mask(std::int64_t round, crypto::Secret const& own, PublicKeys const& of_own,
                   PublicKeys const& other, std::span<std::uint32_t> words);

}  // namespace stratagem
