#include "compress/low_rank_code.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

using namespace low_rank_code;

/// Normal numbers, the same in every run.
at::Tensor some_matrix(std::int64_t m, std::int64_t n, std::uint64_t seed) {
  auto matrix = at::zeros({m, n}, at::kFloat);
  revive(matrix, CounterRandom(seed, "matrix"), 0);
  return matrix;
}

/// [m, n] of that rank, with equally large singular values, more or less.
at::Tensor of_rank(std::int64_t rank, std::int64_t m, std::int64_t n) {
  return some_matrix(m, rank, 1).mm(some_matrix(rank, n, 2));
}

std::span<float> numbers(at::Tensor const& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

double length_of(at::Tensor const& tensor) {
  return tensor.to(at::kDouble).norm().item<double>();
}

/// A worker alone, which sends what is left of its gradients in factors.
struct Factors {
  Factors(std::int64_t rank, std::int64_t m, std::int64_t n)
      : p(at::zeros({rank, m}, at::kFloat)),
        q(at::zeros({rank, n}, at::kFloat)),
        left(at::zeros({m, n}, at::kFloat)) {}

  /// What arrives of a gradient.
  at::Tensor pass(at::Tensor const& gradient) {
    revive(q, random, step++);
    left.add_(gradient);
    project(left, q, p);
    orthogonalise(numbers(p), p.size(0));
    project_back(left, p, q);
    subtract(left, p, q);
    auto const arrived = at::empty_like(left);
    multiply(arrived, p, q);
    return arrived;
  }

  at::Tensor p, q, left;
  CounterRandom random{3, "factors"};
  std::uint64_t step = 0;
};

TEST(LowRankCode, PaysWhereFactorsAreSmaller) {
  static_assert(pays(1, 3, 3) && !pays(2, 3, 3) && !pays(1, 2, 2));
  static_assert(!pays(1, 1, 1000) && pays(2, 4, 2304));
}

TEST(LowRankCode, RowsBecomeOrthonormal) {
  auto const p = some_matrix(4, 50, 7);
  orthogonalise(numbers(p), 4);
  auto const products = p.mm(p.t());
  EXPECT_LT(length_of(products - at::eye(4)), 1e-6);
}

TEST(LowRankCode, ARowThatDependsOnOthersBecomes0) {
  auto const p = some_matrix(3, 50, 7);
  p[1].copy_(p[0] * 3);
  orthogonalise(numbers(p), 3);
  EXPECT_EQ(length_of(p[1]), 0);
  EXPECT_NEAR(length_of(p[2]), 1, 1e-6);
  EXPECT_LT(std::abs(p[0].dot(p[2]).item<double>()), 1e-6);
  auto const none = at::zeros({2, 50}, at::kFloat);
  orthogonalise(numbers(none), 2);
  EXPECT_EQ(length_of(none), 0);
}

TEST(LowRankCode, IsExactForMatricesOfTheRank) {
  for (std::int64_t const rank : {1, 2, 3})
    for (std::int64_t const more : {0, 1}) {
      auto const matrix = of_rank(rank, 20, 37);
      Factors factors(rank + more, 20, 37);
      EXPECT_LT(length_of(factors.pass(matrix) - matrix), 1e-4 * length_of(matrix))
          << rank << ", " << more;
      EXPECT_LT(length_of(factors.left), 1e-4 * length_of(matrix));
    }
}

TEST(LowRankCode, OfTheSameGradientLessAndLessIsLost) {
  constexpr int steps = 200;
  auto const gradient = some_matrix(20, 30, 5);
  Factors factors(2, 20, 30);
  auto arrived = at::zeros_like(gradient);
  double error = 2;
  for (int i = 1; i <= steps; ++i) {
    arrived.add_(factors.pass(gradient));
    if (i % 50 > 0) continue;
    auto const now = length_of(arrived / i - gradient) / length_of(gradient);
    EXPECT_LT(now, 0.75 * error) << i << " steps";
    error = now;
  }
  EXPECT_LT(length_of(arrived + factors.left - steps * gradient), 1e-4 * length_of(arrived));
}

TEST(LowRankCode, FactorsThatCannotGrowAreDrawnAgain) {
  Factors factors(2, 20, 30);
  factors.pass(at::zeros({20, 30}, at::kFloat));
  EXPECT_EQ(length_of(factors.q), 0);
  auto const gradient = some_matrix(20, 30, 5);
  EXPECT_GT(length_of(factors.pass(gradient)), 0.1 * length_of(gradient));
  factors.q[0].fill_(std::numeric_limits<float>::infinity());
  revive(factors.q, factors.random, 9);
  EXPECT_TRUE(at::isfinite(factors.q).all().item<bool>());
  auto const before = factors.q.clone();
  revive(factors.q, factors.random, 10);
  EXPECT_TRUE(at::equal(factors.q, before)) << "what lives stays";
}

TEST(LowRankCode, WhatIsNotFiniteArrives) {
  for (float const bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto const gradient = some_matrix(20, 30, 5);
    gradient[3][4] = bad;
    EXPECT_FALSE(at::isfinite(Factors(2, 20, 30).pass(gradient)).all().item<bool>()) << bad;
  }
}

}  // namespace
}  // namespace stratagem
