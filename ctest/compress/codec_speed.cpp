#include "compress/codec_speed.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(CodecSpeed, AStepIsEqualToFp32AtTheBandwidthFound) {
  CodecSpeed const speed{.encode = 3e-10, .decode = 1e-10, .decode_and_add = 2e-10};
  EXPECT_EQ(pays_below(Code::int8, speed, 1), 0);
  for (int const ranks : {2, 5}) {
    auto const bandwidth = pays_below(Code::int8, speed, ranks);
    auto const sent = 2.0 * (ranks - 1) / ranks;  // of one byte of gradients
    // Of the sum of a slice, one code is read and the others are added; it is coded, and all read.
    auto const slice = 1.0 / ranks;
    auto const added_up = slice * (1e-10 + (ranks - 1) * 2e-10 + 3e-10);
    auto const coded = sent * 33 / 128 / bandwidth + 3e-10 + added_up + 1e-10;
    EXPECT_NEAR(coded, sent / bandwidth, 1e-3 * coded);
  }
  EXPECT_GT(pays_below(Code::sign, speed, 2), pays_below(Code::bf16, speed, 2));
}

TEST(CodecSpeed, EveryCodeTakesTime) {
  std::set<std::pair<Code, Rounding>> measured;
  for (auto const& [code, rounding, speed] : measure_codecs()) {
    measured.emplace(code, rounding);
    EXPECT_GT(speed.encode, 0);
    EXPECT_GT(speed.decode, 0);
    EXPECT_GT(speed.decode_and_add, 0);
    EXPECT_LT(speed.of_step(2), 1e-6) << "more than a microsecond for a byte";
  }
  auto const others = code_names.size() - block_code_names.size();
  EXPECT_EQ(measured.size(), 2 * (block_code_names.size() - 1) - 1 + others)
      << "neither signs nor codes without blocks are rounded";
}

}  // namespace
}  // namespace stratagem
