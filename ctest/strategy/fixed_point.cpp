#include "strategy/fedavg/fixed_point.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

/// What code() makes of one change with weight 1.
std::int64_t code_of(FixedPoint const& codes, double change) {
  auto const code = at::zeros({1}, at::kInt);
  codes.code(at::full({1}, change), 1, code);
  return code.item<int>();
}

/// sum += weight code. Returns how many were clipped.
std::int64_t add(FixedPoint const& codes, at::Tensor const& change, std::int64_t weight,
                 at::Tensor const& sum) {
  auto const room = at::zeros_like(sum);
  auto const clipped = codes.code(change, weight, room);
  sum.add_(room);
  return clipped;
}

TEST(FixedPoint, LeavesTheBitsThatWeightsDoNotNeed) {
  EXPECT_EQ(FixedPoint(6000, 1).bits(), 32 - 13);
  EXPECT_EQ(FixedPoint(4096, 1).bits(), 32 - 12);
  EXPECT_EQ(FixedPoint(4097, 1).bits(), 32 - 13);
  EXPECT_EQ(FixedPoint(1 << 24, 1).bits(), 8);
  EXPECT_EQ(FixedPoint((1 << 24) + 1, 1).bits(), 7);
  EXPECT_EQ(FixedPoint(1, 1).bits(), FixedPoint::most_bits);
}

TEST(FixedPoint, UnitsAreThePowersOfTwoThatTheLargestChangeAllows) {
  EXPECT_EQ(FixedPoint(6000, 1).unit(), std::ldexp(1, -18));
  EXPECT_EQ(FixedPoint(6000, 0.25).unit(), std::ldexp(1, -20));
  EXPECT_EQ(FixedPoint(6000, 0.3).unit(), std::ldexp(1, -19)) << "the next power that holds it";
  EXPECT_EQ(FixedPoint(6000, 8).unit(), std::ldexp(1, -15));
  EXPECT_EQ(FixedPoint(6000, 1).range(), 1 - std::ldexp(1, -18));
}

TEST(FixedPoint, RoundsToTheNearestAndTiesToEven) {
  FixedPoint const codes(6000, 1);
  auto const unit = codes.unit();
  EXPECT_EQ(code_of(codes, 0), 0);
  EXPECT_EQ(code_of(codes, -0.0), 0);
  EXPECT_EQ(code_of(codes, 3 * unit), 3);
  EXPECT_EQ(code_of(codes, -3.4 * unit), -3);
  EXPECT_EQ(code_of(codes, 2.5 * unit), 2);
  EXPECT_EQ(code_of(codes, 3.5 * unit), 4);
  EXPECT_EQ(code_of(codes, -2.5 * unit), -2);
  EXPECT_EQ(code_of(codes, std::numeric_limits<float>::denorm_min()), 0);
}

TEST(FixedPoint, ClipsAndCountsWhatIsTooLarge) {
  FixedPoint const codes(6000, 1);
  auto const change = at::tensor({2.0F, -2.0F, 0.5F, 1.0F, 1e30F, 0.99999F});
  auto const sum = at::zeros({6}, at::kInt);
  EXPECT_EQ(add(codes, change, 1, sum), 4);
  int const most = (1 << 18) - 1;
  EXPECT_TRUE(sum.equal(at::tensor({most, -most, 1 << 17, most, most, most - 2}, at::kInt))) << sum;
}

/// All weights with the largest change of one sign: one more would not fit.
TEST(FixedPoint, NoSumOverflows) {
  for (std::int64_t const weights : {1, 2, 3, 100, 4096, 6000, 60000, 1 << 24}) {
    FixedPoint const codes(weights, 1);
    for (float const sign : {-1.0F, 1.0F}) {
      auto const sum = at::zeros({1}, at::kInt), mean = at::zeros({1}, at::kDouble);
      auto const first = weights / 3;
      add(codes, at::full({1}, 2 * sign), first, sum);
      add(codes, at::full({1}, 2 * sign), weights - first, sum);
      codes.mean_of(sum, weights, mean);
      EXPECT_DOUBLE_EQ(mean.item<double>(), sign * codes.range()) << weights;
    }
  }
}

TEST(FixedPoint, TheMeanIsTheWeightedOneAndTheOrderIsFree) {
  constexpr std::int64_t clients = 20, numel = 500;
  std::int64_t weights = 0;
  for (std::int64_t i = 0; i < clients; ++i) weights += 10 + 7 * i;
  FixedPoint const codes(weights, 1);
  auto const changes =
      at::arange(clients * numel, at::kDouble).mul_(0.37).sin_().mul_(0.1).view({clients, numel});
  auto const sum_in = [&](bool backwards) {
    auto const sum = at::zeros({numel}, at::kInt);
    for (std::int64_t i = 0; i < clients; ++i) {
      auto const client = backwards ? clients - 1 - i : i;
      add(codes, changes[client].to(at::kFloat), 10 + 7 * client, sum);
    }
    return sum;
  };
  EXPECT_TRUE(sum_in(false).equal(sum_in(true)));
  auto const mean = at::zeros({numel}, at::kDouble);
  codes.mean_of(sum_in(false), weights, mean);
  auto expected = at::zeros({numel}, at::kDouble);
  for (std::int64_t i = 0; i < clients; ++i)
    expected += changes[i] * (static_cast<double>(10 + 7 * i) / static_cast<double>(weights));
  EXPECT_LT((mean - expected).abs().max().item<double>(), codes.unit());
  EXPECT_GT((mean - expected).abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace stratagem
