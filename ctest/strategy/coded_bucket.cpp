#include "strategy/ddp/coded_bucket.hpp"

#include <gtest/gtest.h>

#include "conformance/training.hpp"
#include "strategy/shared/compressed.hpp"
#include "strategy/shared/model_layout.hpp"

namespace stratagem {
namespace {

BucketPlan two_buckets() {
  return {{{{320, 4320}, 1, 2}, {{0, 320}, 0, 0}}};
}

TEST(CodedBucket, SlicesAreWholeBlocksAndCoverTheBucket) {
  for (int ranks = 1; ranks <= 12; ++ranks)
    for (auto const& bucket : coded_buckets(two_buckets(), Code::int8, ranks)) {
      auto place = bucket.range.begin;
      for (int rank = 0; rank < ranks; ++rank) {
        auto const slice = bucket.slice_of(rank);
        EXPECT_EQ(slice.begin, place);
        EXPECT_EQ(slice.begin % block_elements, 0);
        EXPECT_LE(slice.size(), bucket.slice);
        place = slice.end;
      }
      EXPECT_EQ(place, bucket.range.end) << ranks << " ranks";
      EXPECT_EQ(bucket.wire, bucket.slice / 32 * 33);
    }
}

TEST(CodedBucket, BytesOfARank) {
  auto const coded = coded_buckets(two_buckets(), Code::sign, 4);
  // 4,000 elements are 125 blocks: 32 in a slice; 320 are 10: 3 in a slice.
  EXPECT_EQ(coded[0].wire, 32 * 6);
  EXPECT_EQ(coded[1].wire, 3 * 6);
  EXPECT_EQ(bytes_sent(coded, 4), 2 * 3 * 35 * 6);
  EXPECT_EQ(bytes_sent(coded_buckets(two_buckets(), Code::sign, 1), 1), 0);
  EXPECT_EQ(bytes_held(coded, false, 4, 4320), 3 * 4 * 35 * 6);
  EXPECT_EQ(bytes_held(coded, true, 4, 4320), 3 * 4 * 35 * 6 + 4 * (4320 + 35 * 32));
}

TEST(CodedBucket, PaddingIsClearedAndNothingElse) {
  auto const layout = make_layout(test::test_model("tiny_odd"));
  std::vector<float> values(static_cast<std::size_t>(layout.size()), 1.0F);
  FlatRange const rest{32, layout.size()};
  clear_padding(layout, rest, std::span(values).subspan(32));
  std::int64_t kept = 0;
  for (float const value : values) kept += value == 1.0F ? 1 : 0;
  auto expected = layout.parameter_count();
  for (auto const& entry : layout.entries())  // padding before the range stays
    if (auto const end = entry.offset + entry.spec.numel(); end < 32) expected += 32 - end;
  EXPECT_EQ(kept, expected);
  EXPECT_LT(layout.parameter_count(), layout.size());
}

}  // namespace
}  // namespace stratagem
