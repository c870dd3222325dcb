#include "crypto/primitives.hpp"

#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "crypto/hex.hpp"

namespace stratagem::crypto {
namespace {

using test::array_of;
using test::from_hex;
using test::secret_of;
using test::to_hex;

/// Published vectors, of a build with OpenSSL.
class Primitives : public testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << "needs OpenSSL";
  }
};

constexpr auto alice = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
constexpr auto alice_public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
constexpr auto bob = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
constexpr auto bob_public = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
constexpr auto of_both = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
constexpr auto zeros = "0000000000000000000000000000000000000000000000000000000000000000";
constexpr auto counting = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

std::string agreed(char const* own, char const* other) {
  return to_hex(agree(secret_of(own), array_of<32>(other)).value().bytes());
}

/// RFC 7748, section 5.2.
TEST_F(Primitives, X25519MultipliesPoints) {
  EXPECT_EQ(agreed("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
                   "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"),
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
  EXPECT_EQ(agreed("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
                   "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493"),
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
  std::string k = "0900000000000000000000000000000000000000000000000000000000000000", u = k;
  for (int i = 1; i <= 1000; ++i) {
    u = std::exchange(k, agreed(k.c_str(), u.c_str()));
    if (i == 1) {
      EXPECT_EQ(k, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
    }
  }
  EXPECT_EQ(k, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
}

/// RFC 7748, section 6.1.
TEST_F(Primitives, X25519GivesTwoOwnersOneSecret) {
  EXPECT_EQ(to_hex(public_key(secret_of(alice))), alice_public);
  EXPECT_EQ(to_hex(public_key(secret_of(bob))), bob_public);
  EXPECT_EQ(agreed(alice, bob_public), of_both);
  EXPECT_EQ(agreed(bob, alice_public), of_both);
}

/// Of order 1, 2, 4 and 8, and the same not reduced.
TEST_F(Primitives, PointsOfLowOrderAreRefused) {
  for (auto const* low : {zeros, "0100000000000000000000000000000000000000000000000000000000000000",
                          "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                          "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
                          "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
                          "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                          "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"}) {
    EXPECT_FALSE(agree(secret_of(alice), array_of<32>(low)).has_value()) << low;
  }
}

/// RFC 5869, case 1, and case 3, which has neither salt nor info.
TEST_F(Primitives, HkdfDerivesKeys) {
  std::vector<std::uint8_t> const secret(22, 0x0b);
  std::vector<std::uint8_t> key(42);
  derive(secret, from_hex("000102030405060708090a0b0c"), from_hex("f0f1f2f3f4f5f6f7f8f9"), key);
  EXPECT_EQ(to_hex(key),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  derive(secret, {}, {}, key);
  EXPECT_EQ(to_hex(key),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

/// RFC 8439, section 2.3.2, and appendix A.1, vector 1.
TEST_F(Primitives, ChaCha20HasItsBlocks) {
  std::vector<std::uint8_t> block(64);
  key_stream(secret_of(counting), 1, array_of<12>("000000090000004a00000000"), block);
  EXPECT_EQ(to_hex(block),
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
            "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e");
  key_stream(secret_of(zeros), 0, {}, block);
  EXPECT_EQ(to_hex(block),
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586");
}

std::string const sunscreen =
    "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    "sunscreen would be it.";
std::span<std::uint8_t const> bytes_of(std::string const& text) {
  return {reinterpret_cast<std::uint8_t const*>(text.data()), text.size()};
}

/// RFC 8439, section 2.4.2.
TEST_F(Primitives, ChaCha20Encrypts) {
  std::vector<std::uint8_t> text(sunscreen.size());
  key_stream(secret_of(counting), 1, array_of<12>("000000000000004a00000000"), text);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] ^= bytes_of(sunscreen)[i];
  EXPECT_EQ(to_hex(text),
            "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
            "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
            "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
            "5af90bbf74a35be6b40b8eedf2785e42874d");
}

/// Of several pieces, the last not whole.
TEST_F(Primitives, AStreamIsAddedAndTakenAway) {
  auto const key = secret_of(counting);
  std::vector<std::uint32_t> words(10001), stream(words.size());
  std::iota(words.begin(), words.end(), 0xffffff00U);
  auto const before = words;
  key_stream(key, 0, {}, {reinterpret_cast<std::uint8_t*>(stream.data()), 4 * stream.size()});
  add_key_stream(key, Sign::plus, words);
  for (std::size_t i = 0; i < words.size(); ++i)
    ASSERT_EQ(words[i], static_cast<std::uint32_t>(before[i] + stream[i])) << i;
  add_key_stream(key, Sign::minus, words);
  EXPECT_EQ(words, before);
  add_key_stream(key, Sign::minus, words);
  add_key_stream(key, Sign::plus, words);
  EXPECT_EQ(words, before);
}

/// RFC 8439, section 2.8.2.
struct Sealed {
  Secret key = secret_of("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
  Nonce nonce = array_of<12>("070000004041424344454647");
  std::vector<std::uint8_t> associated = from_hex("50515253c0c1c2c3c4c5c6c7");
  std::vector<std::uint8_t> bytes = from_hex(
      "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
      "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
      "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
      "3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691");

  /// Empty where it is refused.
  std::string open() const {
    std::string text(bytes.size() - tag_bytes, '\0');
    std::span const room{reinterpret_cast<std::uint8_t*>(text.data()), text.size()};
    if (unseal(key, nonce, associated, bytes, room)) return text;
    EXPECT_EQ(text, std::string(text.size(), '\0')) << "nothing is left of what is refused";
    return {};
  }
};

TEST_F(Primitives, ChaCha20Poly1305SealsAndOpens) {
  Sealed const published;
  std::vector<std::uint8_t> own(published.bytes.size());
  seal(published.key, published.nonce, published.associated, bytes_of(sunscreen), own);
  EXPECT_EQ(to_hex(own), to_hex(published.bytes));
  EXPECT_EQ(published.open(), sunscreen);
}

TEST_F(Primitives, OneOtherBitIsRefused) {
  for (std::size_t i = 0; i < Sealed().bytes.size(); ++i) {
    Sealed forged;
    forged.bytes[i] ^= static_cast<std::uint8_t>(1 << i % 8);
    EXPECT_EQ(forged.open(), "") << i;
  }
  Sealed of_another, to_another, replayed;
  of_another.key.bytes()[3] ^= 1;
  to_another.associated[4] ^= 1;
  replayed.nonce[5] ^= 1;
  for (auto const* forged : {&of_another, &to_another, &replayed}) EXPECT_EQ(forged->open(), "");
}

}  // namespace
}  // namespace stratagem::crypto
