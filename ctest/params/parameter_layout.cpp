#include "params/parameter_layout.hpp"

#include <stdexcept>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

using Specs = std::vector<std::vector<ParameterSpec>>;

/// A convolution with a norm, a block without parameters, and a linear layer.
Specs three_blocks() {
  auto const zero = Initialiser::constant(0);
  return {{{"conv.weight", {5, 3, 2, 2}, zero},
           {"norm.weight", {5}, zero, true},
           {"conv.bias", {5}, zero}},
          {},
          {{"head.weight", {7, 33}, zero}, {"head.bias", {7}, zero}}};
}

TEST(ParameterLayout, PlacesBlocksInOrderWithoutOverlap) {
  ParameterLayout const layout(three_blocks(), false);
  ASSERT_EQ(layout.blocks(), 3);
  EXPECT_EQ(layout.parameter_count(), 60 + 5 + 5 + 231 + 7);
  std::int64_t end = 0;
  for (int block = 0; block < layout.blocks(); ++block) {
    EXPECT_EQ(layout.range(block).begin, end);
    end = layout.range(block).end;
  }
  EXPECT_EQ(layout.size(), end);
  EXPECT_EQ(layout.range(1).size(), 0);

  std::vector<bool> taken(static_cast<std::size_t>(layout.size()));
  for (auto const& entry : layout.entries()) {
    EXPECT_EQ(entry.offset % ParameterLayout::alignment, 0) << entry.spec.name;
    EXPECT_LE(layout.range(entry.block).begin, entry.offset);
    EXPECT_LE(entry.offset + entry.spec.numel(), layout.range(entry.block).end);
    for (auto i = entry.offset; i < entry.offset + entry.spec.numel(); ++i) {
      EXPECT_FALSE(taken[static_cast<std::size_t>(i)]);
      taken[static_cast<std::size_t>(i)] = true;
    }
  }
}

TEST(ParameterLayout, KeepsLowPrecisionTogetherAndDeclarationOrder) {
  ParameterLayout const layout(three_blocks(), false);
  auto const entries = layout.entries(0);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[1].spec.name, "norm.weight");
  auto const low = layout.low_precision_range(0);
  for (auto const& entry : entries) {
    bool const inside = low.begin <= entry.offset && entry.offset + entry.spec.numel() <= low.end;
    EXPECT_EQ(inside, !entry.spec.keep_fp32) << entry.spec.name;
  }
  EXPECT_EQ(layout.low_precision_range(2), layout.range(2));
}

TEST(ParameterLayout, ViewsShareTheFlatTensor) {
  for (bool const channels_last : {false, true}) {
    ParameterLayout const layout(three_blocks(), channels_last);
    auto const flat = at::zeros({layout.size()});
    auto const views = views_of(flat, layout, 0);
    ASSERT_EQ(views.size(), 3U);
    EXPECT_EQ(views[0].sizes(), at::IntArrayRef({5, 3, 2, 2}));
    auto const format =
        channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    EXPECT_TRUE(views[0].is_contiguous(format));
    views[0].fill_(1);
    views_of(flat, layout, 2)[1].fill_(2);
    EXPECT_EQ(flat.sum().item<float>(), 60 + 2 * 7);
  }
}

TEST(ParameterLayout, RefusesAFlatTensorThatIsTooShort) {
  ParameterLayout const layout(three_blocks(), false);
  EXPECT_THROW(view_of(at::zeros({40}), layout.entries().back()), std::logic_error);
}

TEST(ParameterLayout, HashTellsLayoutsApart) {
  ParameterLayout const layout(three_blocks(), false);
  EXPECT_EQ(layout.hash(), ParameterLayout(three_blocks(), false).hash());
  EXPECT_NE(layout.hash(), ParameterLayout(three_blocks(), true).hash());
  auto renamed = three_blocks();
  renamed[2][0].name = "fc.weight";
  EXPECT_NE(layout.hash(), ParameterLayout(renamed, false).hash());
  auto reshaped = three_blocks();
  reshaped[2][0].shape = {33, 7};
  EXPECT_NE(layout.hash(), ParameterLayout(reshaped, false).hash());
}

TEST(ParameterLayout, MayBeEmpty) {
  ParameterLayout const layout(Specs{}, false);
  EXPECT_EQ(layout.size(), 0);
  EXPECT_EQ(layout.blocks(), 0);
}

TEST(ParameterLayout, BorrowedParametersHaveOnePlace) {
  auto const zero = Initialiser::constant(0);
  Specs const specs{{{"tokens", {7, 3}, zero}, {"positions", {5, 3}, zero}},
                    {{"middle", {3}, zero}},
                    {{"norm", {3}, zero}}};
  ParameterLayout const layout(specs, false, {{}, {}, {"tokens"}}), without(specs, false);
  EXPECT_EQ(layout.size(), without.size());
  EXPECT_EQ(layout.parameter_count(), 21 + 15 + 3 + 3);
  EXPECT_EQ(layout.entries(2).size(), 1U);
  EXPECT_TRUE(layout.lends(0));
  EXPECT_FALSE(layout.lends(1));
  EXPECT_FALSE(without.lends(0));
  EXPECT_NE(layout.hash(), without.hash());
  auto const flat = at::arange(layout.size()).to(at::kFloat);
  auto const first = views_of(flat, layout, 0), last = views_of(flat, layout, 2);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[1].data_ptr(), first[0].data_ptr());
  EXPECT_EQ(last[1].sizes(), at::IntArrayRef({7, 3}));
  EXPECT_THROW(ParameterLayout(specs, false, {{"tokens"}}), std::logic_error)
      << "no earlier block declares it";
}

}  // namespace
}  // namespace stratagem
