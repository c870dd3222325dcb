#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "crypto/secret.hpp"

namespace stratagem::crypto {

// What OpenSSL 3 computes. A build without it has the same functions, which must not be called.

/// "OpenSSL 3.0.19 ..."; empty in a build without.
std::string_view library();
inline bool available() {
  return !library().empty();
}
/// Error(environment) unless available(): `what` needs it.
void require_available(std::string_view what);

/// Of X25519 (RFC 7748): its owner has a Secret, any 32 bytes.
using PublicKey = std::array<std::uint8_t, 32>;
PublicKey public_key(Secret const& own);
/// What two owners of keys have in common; nothing where the other key is a point of low order,
/// with which everybody has the same in common.
std::optional<Secret> agree(Secret const& own, PublicKey const& other);

/// HKDF with SHA-256 (RFC 5869).
void derive(std::span<std::uint8_t const> secret, std::span<std::uint8_t const> salt,
            std::span<std::uint8_t const> info, std::span<std::uint8_t> key);

using Nonce = std::array<std::uint8_t, 12>;

/// Key stream of ChaCha20 (RFC 8439), from block `counter` on.
void key_stream(Secret const& key, std::uint32_t counter, Nonce const& nonce,
                std::span<std::uint8_t> stream);
/// Adds the stream from block 0 on, nonce 0, to words modulo 2^32, or takes it away. Words are of
/// this machine's order.
enum class Sign { plus, minus };
void add_key_stream(Secret const& key, Sign sign, std::span<std::uint32_t> words);

/// Of ChaCha20-Poly1305 (RFC 8439): sealed bytes are so many more than open ones.
inline constexpr std::size_t tag_bytes = 16;
/// A nonce seals one text with a key, never two.
void seal(Secret const& key, Nonce const& nonce, std::span<std::uint8_t const> associated,
          std::span<std::uint8_t const> open, std::span<std::uint8_t> sealed);
/// False, and `open` is wiped, where one bit of all of these is another than it was.
[[nodiscard]] bool unseal(Secret const& key, Nonce const& nonce,
                          std::span<std::uint8_t const> associated,
                          std::span<std::uint8_t const> sealed, std::span<std::uint8_t> open);

}  // namespace stratagem::crypto
