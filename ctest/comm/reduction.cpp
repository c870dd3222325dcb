#include "comm/reduction.hpp"

#include <limits>
#include <stdexcept>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/communicator_suite.hpp"

namespace stratagem {
namespace {

using test::same_bits;
using test::sum_of_ranks;
using test::values_of;

at::Tensor sum(std::vector<at::Tensor> const& tensors) {
  std::vector<std::byte const*> sources;
  for (auto const& tensor : tensors)
    sources.push_back(static_cast<std::byte const*>(tensor.data_ptr()));
  auto const& first = tensors.front();
  auto const out = at::empty_like(first);
  sum_in_order(sources, static_cast<std::byte*>(out.data_ptr()), first.numel(),
               first.scalar_type());
  return out;
}

TEST(Reduction, AddsInRankOrder) {
  for (auto const type : {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kBFloat16, at::kHalf})
    for (int ranks = 1; ranks <= 5; ++ranks)
      for (std::int64_t numel : {0, 1, 15, 2047, 2048, 2049, 5000}) {
        std::vector<at::Tensor> tensors;
        for (int rank = 0; rank < ranks; ++rank) tensors.push_back(values_of(rank, numel, type));
        EXPECT_TRUE(same_bits(sum(tensors), sum_of_ranks(ranks, numel, type)))
            << ranks << " x " << numel << " " << at::toString(type);
      }
}

/// The order shows where rounding depends on it.
TEST(Reduction, OrderIsVisible) {
  auto const big = at::full({1}, 1e8F), small = at::full({1}, 3.0F);
  EXPECT_EQ(sum({big, small, -big}).item<float>(), (1e8F + 3.0F) - 1e8F);
  EXPECT_EQ(sum({big, -big, small}).item<float>(), 3.0F);
}

/// bf16 holds 256 + 1 only between its steps: rounding after each addition would lose every 1.
TEST(Reduction, SixteenBitFloatsAreRoundedOnce) {
  auto const one = at::ones({1}, at::kBFloat16), base = at::full({1}, 256, at::kBFloat16);
  EXPECT_EQ(sum({base, one, one}).item<float>(), 258.0F);
}

/// As masks of secure sums need it.
TEST(Reduction, SumsOf32BitsWrapAround) {
  auto const most = at::full({5000}, std::numeric_limits<int>::max(), at::kInt);
  EXPECT_TRUE(sum({most, most, most}).eq(std::numeric_limits<int>::max() - 2).all().item<bool>());
  EXPECT_TRUE(sum({most, at::ones({5000}, at::kInt)})
                  .eq(std::numeric_limits<int>::min())
                  .all()
                  .item<bool>());
}

TEST(Reduction, OutputMayBeASource) {
  for (int own = 0; own < 3; ++own) {
    std::vector<at::Tensor> tensors;
    std::vector<std::byte const*> sources;
    for (int rank = 0; rank < 3; ++rank) {
      tensors.push_back(values_of(rank, 5000, at::kFloat));
      sources.push_back(static_cast<std::byte const*>(tensors.back().data_ptr()));
    }
    auto const& out = tensors[static_cast<std::size_t>(own)];
    sum_in_order(sources, static_cast<std::byte*>(out.data_ptr()), 5000, at::kFloat);
    EXPECT_TRUE(same_bits(out, sum_of_ranks(3, 5000, at::kFloat)));
  }
}

/// Sums handed from one to the next, with a few sources each, have the bits of one sum.
TEST(Reduction, GoesOnWithAPrefix) {
  constexpr std::int64_t numel = 5000;
  for (auto const type : {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kBFloat16, at::kHalf}) {
    auto const sums = at::empty({numel}, sum_type(type));
    auto* const bytes = static_cast<std::byte*>(sums.data_ptr());
    int rank = 0;
    for (int const more : {1, 3, 2}) {
      bool const has_prefix = rank > 0;
      std::vector<at::Tensor> tensors;
      std::vector<std::byte const*> sources;
      for (int i = 0; i < more; ++i) {
        tensors.push_back(values_of(rank++, numel, type));
        sources.push_back(static_cast<std::byte const*>(tensors.back().data_ptr()));
      }
      add_in_order(sources, bytes, has_prefix, numel, type);
    }
    round_sums(bytes, numel, type);
    auto const rounded = at::from_blob(sums.data_ptr(), {numel}, at::TensorOptions().dtype(type));
    EXPECT_TRUE(same_bits(rounded, sum_of_ranks(rank, numel, type))) << at::toString(type);
  }
}

TEST(Reduction, RefusesTypesWithoutASum) {
  EXPECT_FALSE(is_summable(at::kBool));
  EXPECT_THROW(sum({at::zeros({4}, at::kBool)}), std::logic_error);
}

}  // namespace
}  // namespace stratagem
