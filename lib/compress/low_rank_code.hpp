#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "base/random.hpp"

namespace stratagem::low_rank_code {

// A matrix M [m, n] as a product of thin ones, P^T Q, where P [r, m] and Q [r, n]: one step of the
// power method for each gradient, which begins with the Q of the last (PowerSGD, Vogels et al.,
// NeurIPS 2019, arXiv 1905.13727, algorithm 1). All are contiguous, in fp32 on the CPU. Products of
// equal sizes have the same bits on every rank.

/// Whether the two products have fewer elements.
constexpr bool pays(std::int64_t rank, std::int64_t m, std::int64_t n) {
  return rank * (m + n) < m * n;
}

/// Rows of Q that are 0 or have a number that is not finite <- normal random numbers of the
/// sequence `sequence`: before the first step these are all of them, and no row stays as it is for
/// ever.
void revive(at::Tensor const& q, CounterRandom const& random, std::uint64_t sequence);

/// P <- Q M^T.
void project(at::Tensor const& m, at::Tensor const& q, at::Tensor const& p);
/// Makes the rows of P orthonormal, one after the other (modified Gram-Schmidt, in fp64). What is
/// left of a row that depends on those before it is rounding, and becomes 0.
void orthogonalise(std::span<float> p, std::int64_t rank);
/// Q <- P M.
void project_back(at::Tensor const& m, at::Tensor const& p, at::Tensor const& q);
/// M <- M - P^T Q.
void subtract(at::Tensor const& m, at::Tensor const& p, at::Tensor const& q);
/// M <- P^T Q.
void multiply(at::Tensor const& m, at::Tensor const& p, at::Tensor const& q);

}  // namespace stratagem::low_rank_code
