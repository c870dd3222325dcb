#include "base/contract.hpp"
#include "crypto/primitives.hpp"

namespace stratagem::crypto {
namespace {

[[noreturn]] void refuse() {
  contract_violation("precondition", "a build with OpenSSL", std::source_location::current());
}

}  // namespace

std::string_view library() {
  return {};
}

PublicKey public_key(Secret const& /*own*/) {
  refuse();
}

std::optional<Secret> agree(Secret const& /*own*/, PublicKey const& /*other*/) {
  refuse();
}

void derive(std::span<std::uint8_t const> /*secret*/, std::span<std::uint8_t const> /*salt*/,
            std::span<std::uint8_t const> /*info*/, std::span<std::uint8_t> /*key*/) {
  refuse();
}

void key_stream(Secret const& /*key*/, std::uint32_t /*counter*/, Nonce const& /*nonce*/,
                std::span<std::uint8_t> /*stream*/) {
  refuse();
}

void add_key_stream(Secret const& /*key*/, Sign /*sign*/, std::span<std::uint32_t> /*words*/) {
  refuse();
}

void seal(Secret const& /*key*/, Nonce const& /*nonce*/,
          std::span<std::uint8_t const> /*associated*/, std::span<std::uint8_t const> /*open*/,
          std::span<std::uint8_t> /*sealed*/) {
  refuse();
}

bool unseal(Secret const& /*key*/, Nonce const& /*nonce*/,
            std::span<std::uint8_t const> /*associated*/, std::span<std::uint8_t const> /*sealed*/,
            std::span<std::uint8_t> /*open*/) {
  refuse();
}

}  // namespace stratagem::crypto
