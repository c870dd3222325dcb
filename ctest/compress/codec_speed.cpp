#include "compress/codec_speed.hpp"

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(CodecSpeed, AStepIsEqualToFp32AtTheBandwidthFound) {
  CodecSpeed const speed{.encode = 3e-10, .decode = 1e-10, .decode_and_add = 2e-10};
  EXPECT_EQ(pays_below(Code::int8, speed, 1), 0);
  for (int const ranks : {2, 5}) {
    auto const bandwidth = pays_below(Code::int8, speed, ranks);
    auto const sent = 2.0 * (ranks - 1) / ranks;  // of one byte of gradients
    auto const coded = sent * 33 / 128 / bandwidth + 3e-10 * (1 + 1.0 / ranks) + 3e-10;
    EXPECT_NEAR(coded, sent / bandwidth, 1e-3 * coded);
  }
  EXPECT_GT(pays_below(Code::sign, speed, 2), pays_below(Code::bf16, speed, 2));
}

TEST(CodecSpeed, EveryCodeTakesTime) {
  for (auto const code : {Code::bf16, Code::int8, Code::sign}) {
    auto const speed = measure_codec(code, Rounding::nearest);
    EXPECT_GT(speed.encode, 0);
    EXPECT_GT(speed.decode, 0);
    EXPECT_GT(speed.decode_and_add, 0);
    EXPECT_LT(speed.of_step(2), 1e-6) << "more than a microsecond for a byte";
  }
}

}  // namespace
}  // namespace stratagem
