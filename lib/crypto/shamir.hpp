#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "crypto/secret.hpp"

namespace stratagem::crypto {

// Shamir's secret sharing (How to share a secret, CACM 22-11, 1979), for each byte by itself, in
// the field of 256 elements that AES has: modulo x^8 + x^4 + x^3 + x + 1.

namespace gf256 {
// No tables and no branches on values: what they take does not depend on secrets.
std::uint8_t multiply(std::uint8_t a, std::uint8_t b);
/// 0 of 0.
std::uint8_t inverse(std::uint8_t a);
}  // namespace gf256

/// A value of the polynomial whose constant term is the secret.
struct Share {
  std::uint8_t point = 0;  ///< never 0 in a share
  Secret value;
};

inline constexpr int most_shares = 255;

/// At the points 1 to `shares`; any `threshold` of them rebuild the secret, and fewer say nothing
/// about it: the other coefficients are random. 1 <= threshold <= shares <= most_shares.
std::vector<Share> split(Secret const& secret, int threshold, int shares);

/// The secret, of as many shares as the threshold, which are the values of one polynomial.
/// Error(bad_data) where a point is 0 or comes twice.
Secret combine(std::span<Share const> shares);

}  // namespace stratagem::crypto
