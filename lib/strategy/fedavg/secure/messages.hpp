#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crypto/primitives.hpp"
#include "crypto/shamir.hpp"

namespace stratagem {

// What the clients of a round say for a secure sum, each with as many bytes whatever it says.
// Integers are little-endian. Who reads checks every number before it is used.

/// To all: of two key pairs that live for one round.
struct PublicKeys {
  static constexpr std::size_t bytes = 4 + 2 * 32;
  int client = 0;               ///< its place in the round
  crypto::PublicKey sealing{};  ///< of shares
  crypto::PublicKey masking{};

  void write(std::span<std::uint8_t, bytes> to) const;
  static PublicKeys read(std::span<std::uint8_t const, bytes> from);
};

/// By place. Error(bad_data) where a client comes twice or not at all.
std::vector<PublicKeys> table_of(std::span<PublicKeys const> keys, int parties);

/// What a client holds for another: its shares of the two secrets, at one point.
struct HeldShares {
  static constexpr std::size_t bytes = 1 + 2 * crypto::Secret::size;
  std::uint8_t point = 0;
  crypto::Secret own_mask, mask_key;

  void write(std::span<std::uint8_t, bytes> to) const;
  static HeldShares read(std::span<std::uint8_t const, bytes> from);
};

/// The same from its owner to one who shall hold it, by way of the server, which cannot read it.
struct SealedShares {
  static constexpr std::size_t sealed_bytes = HeldShares::bytes + crypto::tag_bytes;
  static constexpr std::size_t bytes = 2 * 4 + sealed_bytes;
  int from = 0, to = 0;
  std::array<std::uint8_t, sealed_bytes> sealed{};

  void write(std::span<std::uint8_t, bytes> place) const;
  static SealedShares read(std::span<std::uint8_t const, bytes> place);
};

/// Which secret a share is one of.
enum class SecretKind : std::uint8_t { none, own_mask, mask_key };

/// To the server, of one who holds it.
struct RevealedShare {
  static constexpr std::size_t bytes = 2 * 4 + 1 + 1 + crypto::Secret::size;
  int holder = 0, owner = 0;
  SecretKind kind = SecretKind::none;
  crypto::Share share;

  void write(std::span<std::uint8_t, bytes> to) const;
  static RevealedShare read(std::span<std::uint8_t const, bytes> from);
};

}  // namespace stratagem
