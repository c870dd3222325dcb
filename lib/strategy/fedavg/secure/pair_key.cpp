#include "strategy/fedavg/secure/pair_key.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

void append(std::vector<std::uint8_t>& info, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte)
    info.push_back(static_cast<std::uint8_t>(number >> 8 * byte));
}

crypto::PublicKey const& key_of(PublicKeys const& keys, KeyUse use) {
  return use == KeyUse::sealing ? keys.sealing : keys.masking;
}

/// Alike for both of a pair.
std::vector<std::uint8_t> info_of(KeyUse use, std::int64_t round, PublicKeys const* first,
                                  PublicKeys const* second) {
  if (first->client > second->client) std::swap(first, second);
  std::string_view const label =
      use == KeyUse::sealing ? "stratagem secure sum: shares" : "stratagem secure sum: mask";
  std::vector<std::uint8_t> info(label.begin(), label.end());
  append(info, static_cast<std::uint64_t>(round));
  for (auto const* keys : {first, second}) {
    append(info, static_cast<std::uint64_t>(keys->client));
    auto const& key = key_of(*keys, use);
    info.insert(info.end(), key.begin(), key.end());
  }
  return info;
}

}  // namespace

crypto::Secret pair_key(KeyUse use, std::int64_t round, crypto::Secret const& own,
                        PublicKeys const& of_own, PublicKeys const& other) {
  auto const common = crypto::agree(own, key_of(other, use));
  if (!common)
    throw Error(ExitCode::bad_data, str("the public key of client ", other.client, " is refused"),
                "a point of low order: with it everybody has the same secret in common");
  crypto::Secret key;
  crypto::derive(common->bytes(), {}, info_of(use, round, &of_own, &other), key.bytes());
  return key;
}

void add_pair_mask(std::int64_t round, crypto::Secret const& own, PublicKeys const& of_own,
                   PublicKeys const& other, std::span<std::uint32_t> words) {
  auto const key = pair_key(KeyUse::masking, round, own, of_own, other);
  crypto::add_key_stream(
      key, of_own.client < other.client ? crypto::Sign::plus : crypto::Sign::minus, words);
}

}  // namespace stratagem
