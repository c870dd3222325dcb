#include "crypto/shamir.hpp"

#include <bitset>
#include <stdexcept>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem::crypto {
namespace {

/// x a, without a branch.
std::uint8_t doubled(std::uint8_t a) {
  return static_cast<std::uint8_t>(a << 1 ^ (0x1b & -(a >> 7)));
}

/// sum <- sum + factor value, for each byte. Sums are exclusive ors.
void add_product(Secret& sum, std::uint8_t factor, Secret const& value) {
  for (std::size_t i = 0; i < Secret::size; ++i)
    sum.bytes()[i] ^= gf256::multiply(factor, value.bytes()[i]);
}

/// At one point, by Horner's rule; coefficients from the constant one on.
Secret value_at(std::uint8_t point, std::span<Secret const> coefficients) {
  Secret value = coefficients.back().copy();
  for (auto next = coefficients.rbegin() + 1; next != coefficients.rend(); ++next) {
    Secret more = next->copy();
    add_product(more, point, value);
    value = std::move(more);
  }
  return value;
}

void check_points(std::span<Share const> shares) {
  std::bitset<256> seen;
  for (auto const& share : shares) {
    if (share.point == 0 || seen.test(share.point))
      throw Error(ExitCode::bad_data,
                  str("a share of a secret at point ", int{share.point},
                      share.point == 0 ? ", which is the secret's own" : ", where there is one"),
                  "a secret is rebuilt from values at different points");
    seen.set(share.point);
  }
}

}  // namespace

std::uint8_t gf256::multiply(std::uint8_t a, std::uint8_t b) {
  std::uint8_t product = 0;
  for (int bit = 0; bit < 8; ++bit) {
    product ^= static_cast<std::uint8_t>(a & -(b >> bit & 1));
    a = doubled(a);
  }
  return product;
}

/// a^254 = 1 / a.
std::uint8_t gf256::inverse(std::uint8_t a) {
  std::uint8_t power = 1;
  for (int i = 0; i < 7; ++i) {
    a = multiply(a, a);
    power = multiply(power, a);
  }
  return power;
}

std::vector<Share> split(Secret const& secret, int threshold, int shares) {
  if (threshold < 1 || shares < threshold || shares > most_shares)
    throw std::logic_error("so many cannot share a secret");
  std::vector<Secret> coefficients;
  coefficients.push_back(secret.copy());
  while (static_cast<int>(coefficients.size()) < threshold) coefficients.push_back(random_secret());
  std::vector<Share> found;
  for (int point = 1; point <= shares; ++point) {
    auto const at = static_cast<std::uint8_t>(point);
    found.push_back({at, value_at(at, coefficients)});
  }
  return found;
}

/// Lagrange's interpolation at 0.
Secret combine(std::span<Share const> shares) {
  check_points(shares);
  Secret secret;
  for (auto const& share : shares) {
    std::uint8_t weight = 1;
    for (auto const& other : shares)
      if (other.point != share.point) {
        auto const distance = static_cast<std::uint8_t>(other.point ^ share.point);
        weight = gf256::multiply(weight, gf256::multiply(other.point, gf256::inverse(distance)));
      }
    add_product(secret, weight, share.value);
  }
  return secret;
}

}  // namespace stratagem::crypto
