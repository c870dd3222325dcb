#include "strategy/ddp/coded_piece.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/training.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

BucketPlan two_buckets() {
  return {{{{320, 4320}, 1, 2}, {{0, 320}, 0, 0}}};
}

TEST(CodedPiece, SlicesAreWholeBlocksAndCoverThePiece) {
  for (int ranks = 1; ranks <= 12; ++ranks)
    for (auto const& piece : coded_pieces(two_buckets(), Code::int8, ranks)) {
      auto place = piece.range.begin;
      for (int rank = 0; rank < ranks; ++rank) {
        auto const slice = piece.slice_of(rank);
        EXPECT_EQ(slice.begin, place);
        EXPECT_EQ(slice.begin % block_elements, 0);
        EXPECT_LE(slice.size(), piece.slice);
        place = slice.end;
      }
      EXPECT_EQ(place, piece.range.end) << ranks << " ranks";
      EXPECT_EQ(piece.wire, piece.slice / 32 * 33);
    }
}

TEST(CodedPiece, PiecesCoverTheirBuckets) {
  constexpr std::int64_t mebi = 1 << 20;
  BucketPlan const plan{{{{mebi, 3 * mebi + 96}, 1, 2}, {{0, mebi}, 0, 0}}};
  for (int const ranks : {1, 2, 8, 64}) {
    std::vector<std::int64_t> place{mebi, 0};
    for (auto const& piece : coded_pieces(plan, Code::int4, ranks)) {
      EXPECT_EQ(piece.range.begin, place[piece.bucket]);
      EXPECT_EQ(piece.range.begin % block_elements, 0);
      EXPECT_LE(piece.range.size(), std::max<std::int64_t>(1 << 18, ranks * (1 << 15)));
      place[piece.bucket] = piece.range.end;
    }
    EXPECT_EQ(place, (std::vector<std::int64_t>{3 * mebi + 96, mebi})) << ranks;
  }
}

TEST(CodedPiece, BytesOfARank) {
  auto const coded = coded_pieces(two_buckets(), Code::sign, 4);
  // 4,000 elements are 125 blocks: 32 in a slice; 320 are 10: 3 in a slice.
  EXPECT_EQ(coded[0].wire, 32 * 6);
  EXPECT_EQ(coded[1].wire, 3 * 6);
  EXPECT_EQ(bytes_sent(coded, 4), 2 * 3 * 35 * 6);
  EXPECT_EQ(bytes_sent(coded_pieces(two_buckets(), Code::sign, 1), 1), 0);
  EXPECT_EQ(bytes_held(coded, false, 4, 4320), 3 * 4 * 35 * 6);
  EXPECT_EQ(bytes_held(coded, true, 4, 4320), 3 * 4 * 35 * 6 + 4 * (4320 + 35 * 32));
}

TEST(CodedPiece, PaddingIsClearedAndNothingElse) {
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
