#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/random.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// A parameter's gradient as a matrix [m, n] of its first dimension and the rest, in the order of
/// its memory, and where its factors are: P [r, m] among what travels first, Q [r, n] after that.
struct LowRankMatrix {
  std::size_t entry = 0;  ///< of the layout
  FlatRange range;        ///< its elements in the flat space
  std::int64_t m = 0, n = 0;
  std::int64_t p = 0, q = 0;
};

/// A gradient that travels as it is, with what travels first.
struct PlainTensor {
  FlatRange range;
  std::int64_t place = 0;
};

/// How the gradients in a range of the flat space travel. Everything begins on whole blocks of the
/// layout's alignment, so products find equal memory on all ranks.
struct LowRankPlan {
  std::vector<LowRankMatrix> matrices;
  std::vector<PlainTensor> plain;
  std::int64_t first = 0, second = 0;  ///< elements that travel first, and after that

  std::int64_t matrix_elements() const;
};

LowRankPlan low_rank_plan(std::int64_t rank, ParameterLayout const& layout, FlatRange range);

/// Sums of gradients as products of thin matrices (PowerSGD, Vogels et al., NeurIPS 2019, arXiv
/// 1905.13727), in the steps between which sums over workers are made:
///
///   add: M_w <- g_w + M_w, P_w = M_w Q                  sum P = sum of P_w, with plain gradients
///   orthogonalise P; subtract: Q_w = M_w^T P, M_w <- M_w - P Q_w^T           sum Q = sum of Q_w
///   multiply: gradients <- P Q^T, and plain sums
///
/// M_w is the worker's residual [parameters] from one step to the next; Q stays, too. `first` and
/// `second` are what travels, [plan.first] and [plan.second].
class LowRankGradients {
 public:
  LowRankGradients(std::int64_t rank, std::uint64_t seed)
      : rank_(rank), random_(seed, "low_rank") {}

  /// Once per step, before add(): draws what Q lacks.
  void revive(LowRankPlan const& plan, at::Tensor const& second, std::int64_t step) const;
  void add(LowRankPlan const& plan, at::Tensor const& gradients, at::Tensor const& residual,
           at::Tensor const& second, at::Tensor const& first) const;
  void orthogonalise(LowRankPlan const& plan, at::Tensor const& first) const;
  void subtract(LowRankPlan const& plan, at::Tensor const& first, at::Tensor const& residual,
                at::Tensor const& second) const;
  void multiply(LowRankPlan const& plan, at::Tensor const& first, at::Tensor const& second,
                at::Tensor const& gradients) const;

  /// Q, in the first r rows of its matrix's place, as Compression::right_factor.
  std::vector<StatePiece> pieces_of(LowRankPlan const& plan, at::Tensor const& second) const;

 private:
  at::Tensor p_of(LowRankMatrix const& matrix, at::Tensor const& first) const {
    return first.narrow(0, matrix.p, rank_ * matrix.m).view({rank_, matrix.m});
  }
  at::Tensor q_of(LowRankMatrix const& matrix, at::Tensor const& second) const {
    return second.narrow(0, matrix.q, rank_ * matrix.n).view({rank_, matrix.n});
  }

  std::int64_t rank_;
  CounterRandom random_;
};

}  // namespace stratagem
