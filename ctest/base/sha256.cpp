#include "base/hash/sha256.hpp"

#include <string_view>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

std::string digest(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDoNotMatter) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i);
  auto const bytes = std::as_bytes(std::span(text));
  for (std::size_t length : {55, 56, 63, 64, 65, 119, 120, 200})
    for (std::size_t cut = 0; cut <= length; cut += 7)
      EXPECT_EQ(Sha256().add(bytes.first(cut)).add(bytes.subspan(cut, length - cut)).finish(),
                sha256(bytes.first(length)))
          << length << " cut at " << cut;
}

}  // namespace
}  // namespace stratagem
