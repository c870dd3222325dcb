#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "base/error.hpp"
#include "base/simd.hpp"
#include "crypto/primitives.hpp"

namespace stratagem::crypto {
namespace {

template <auto release>
struct Release {
  template <class T>
  void operator()(T* owned) const {
    release(owned);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Release<EVP_PKEY_CTX_free>>;
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Release<EVP_CIPHER_CTX_free>>;
using Kdf = std::unique_ptr<EVP_KDF, Release<EVP_KDF_free>>;
using KdfContext = std::unique_ptr<EVP_KDF_CTX, Release<EVP_KDF_CTX_free>>;

void require(bool worked, char const* what) {
  if (!worked)
    throw Error(ExitCode::environment, std::string("OpenSSL refuses ") + what,
                "its configuration may allow fewer algorithms than it has",
                "look at `openssl list -providers`, or set strategy.secure: none");
}

Key key_of(Secret const& own) {
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, own.bytes().data(), Secret::size));
  require(key != nullptr, "a key of X25519");
  return key;
}

/// Of OpenSSL's ChaCha20: the counter, then the nonce.
std::array<std::uint8_t, 16> begin_of(std::uint32_t counter, Nonce const& nonce) {
  std::array<std::uint8_t, 16> begin{};
  for (int i = 0; i < 4; ++i) begin[static_cast<std::size_t>(i)] = std::uint8_t(counter >> 8 * i);
  std::ranges::copy(nonce, begin.begin() + 4);
  return begin;
}

Cipher stream_of(Secret const& key, std::uint32_t counter, Nonce const& nonce) {
  Cipher cipher(EVP_CIPHER_CTX_new());
  auto const begin = begin_of(counter, nonce);
  require(cipher && EVP_EncryptInit_ex2(cipher.get(), EVP_chacha20(), key.bytes().data(),
                                        begin.data(), nullptr) == 1,
          "ChaCha20");
  return cipher;
}

/// What follows of the stream; `bytes` are zeroed first, of which it is the ciphertext.
void next_of(Cipher const& cipher, std::span<std::uint8_t> bytes) {
  std::ranges::fill(bytes, std::uint8_t{0});
  int written = 0;
  require(EVP_EncryptUpdate(cipher.get(), bytes.data(), &written, bytes.data(),
                            static_cast<int>(bytes.size())) == 1,
          "ChaCha20");
}

STRATAGEM_SIMD_CLONES void add(std::uint32_t* words, std::uint32_t const* more, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) words[i] += more[i];
}
STRATAGEM_SIMD_CLONES void subtract(std::uint32_t* words, std::uint32_t const* less,
                                    std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) words[i] -= less[i];
}

constexpr std::size_t piece_words = 4096;  // of a key stream: they stay in the L1 cache

void check_room(std::size_t open, std::size_t sealed) {
  if (sealed != open + tag_bytes)
    throw std::logic_error("sealed bytes have a tag more than open ones");
}

/// The two directions of ChaCha20-Poly1305, in OpenSSL's words.
struct Direction {
  decltype(&EVP_EncryptInit_ex2) init;
  decltype(&EVP_EncryptUpdate) update;
};

/// Of so few bytes that an int counts them.
Cipher crypt(Direction const& direction, Secret const& key, Nonce const& nonce,
             std::span<std::uint8_t const> associated, std::span<std::uint8_t const> from,
             std::uint8_t* to) {
  Cipher cipher(EVP_CIPHER_CTX_new());
  int written = 0;
  require(cipher &&
              direction.init(cipher.get(), EVP_chacha20_poly1305(), key.bytes().data(),
                             nonce.data(), nullptr) == 1 &&
              direction.update(cipher.get(), nullptr, &written, associated.data(),
                               static_cast<int>(associated.size())) == 1 &&
              direction.update(cipher.get(), to, &written, from.data(),
                               static_cast<int>(from.size())) == 1,
          "ChaCha20-Poly1305");
  return cipher;
}

}  // namespace

std::string_view library() {
  return OpenSSL_version(OPENSSL_VERSION);
}

PublicKey public_key(Secret const& own) {
  auto const key = key_of(own);
  PublicKey found{};
  auto size = found.size();
  require(EVP_PKEY_get_raw_public_key(key.get(), found.data(), &size) == 1, "a key of X25519");
  return found;
}

std::optional<Secret> agree(Secret const& own, PublicKey const& other) {
  auto const key = key_of(own);
  Key const peer(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, other.data(), other.size()));
  KeyContext const context(EVP_PKEY_CTX_new(key.get(), nullptr));
  require(peer && context && EVP_PKEY_derive_init(context.get()) == 1 &&
              EVP_PKEY_derive_set_peer(context.get(), peer.get()) == 1,
          "X25519");
  Secret common;
  auto size = Secret::size;
  // Fails where all bytes are 0, as of a point of low order; looked at again, whoever computed it.
  bool const computed = EVP_PKEY_derive(context.get(), common.bytes().data(), &size) == 1;
  static constexpr std::array<std::uint8_t, Secret::size> zeros{};
  if (!computed || CRYPTO_memcmp(common.bytes().data(), zeros.data(), zeros.size()) == 0)
    return std::nullopt;
  return common;
}

void derive(std::span<std::uint8_t const> secret, std::span<std::uint8_t const> salt,
            std::span<std::uint8_t const> info, std::span<std::uint8_t> key) {
  Kdf const kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  KdfContext const context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  // OpenSSL only reads what these point to.
  auto const octets = [](char const* name, std::span<std::uint8_t const> bytes) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<std::uint8_t*>(bytes.data()),
                                             bytes.size());
  };
  std::string digest = "SHA256";
  std::vector<OSSL_PARAM> parameters{OSSL_PARAM_construct_utf8_string("digest", digest.data(), 0),
                                     octets("key", secret)};
  if (!salt.empty()) parameters.push_back(octets("salt", salt));
  parameters.push_back(octets("info", info));
  parameters.push_back(OSSL_PARAM_construct_end());
  require(context && EVP_KDF_derive(context.get(), key.data(), key.size(), parameters.data()) == 1,
          "HKDF");
}

void key_stream(Secret const& key, std::uint32_t counter, Nonce const& nonce,
                std::span<std::uint8_t> stream) {
  next_of(stream_of(key, counter, nonce), stream);
}

void add_key_stream(Secret const& key, Sign sign, std::span<std::uint32_t> words) {
  auto const cipher = stream_of(key, 0, {});
  std::vector<std::uint32_t> piece(std::min(piece_words, words.size()));
  auto const bytes = reinterpret_cast<std::uint8_t*>(piece.data());
  for (std::size_t begin = 0; begin < words.size(); begin += piece_words) {
    auto const n = std::min(piece_words, words.size() - begin);
    next_of(cipher, {bytes, n * sizeof(std::uint32_t)});
    (sign == Sign::plus ? add : subtract)(words.data() + begin, piece.data(), n);
  }
  wipe({bytes, piece.size() * sizeof(std::uint32_t)});
}

void seal(Secret const& key, Nonce const& nonce, std::span<std::uint8_t const> associated,
          std::span<std::uint8_t const> open, std::span<std::uint8_t> sealed) {
  check_room(open.size(), sealed.size());
  auto const cipher =
      crypt({EVP_EncryptInit_ex2, EVP_EncryptUpdate}, key, nonce, associated, open, sealed.data());
  int written = 0;
  require(EVP_EncryptFinal_ex(cipher.get(), sealed.data() + open.size(), &written) == 1 &&
              EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, int{tag_bytes},
                                  sealed.data() + open.size()) == 1,
          "ChaCha20-Poly1305");
}

bool unseal(Secret const& key, Nonce const& nonce, std::span<std::uint8_t const> associated,
            std::span<std::uint8_t const> sealed, std::span<std::uint8_t> open) {
  check_room(open.size(), sealed.size());
  auto const cipher = crypt({EVP_DecryptInit_ex2, EVP_DecryptUpdate}, key, nonce, associated,
                            sealed.first(open.size()), open.data());
  auto tag = sealed.last<tag_bytes>();
  int written = 0;
  require(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, int{tag_bytes},
                              const_cast<std::uint8_t*>(tag.data())) == 1,
          "ChaCha20-Poly1305");
  bool const true_tag = EVP_DecryptFinal_ex(cipher.get(), open.data(), &written) == 1;
  if (!true_tag) wipe(open);
  return true_tag;
}

}  // namespace stratagem::crypto
