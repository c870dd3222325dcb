#include "strategy/codes/low_rank_gradients.hpp"

#include <ATen/ATen.h>

#include "compress/low_rank_code.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {
namespace {

at::Tensor part(at::Tensor const& flat, FlatRange range) {
  return flat.narrow(0, range.begin, range.size());
}

at::Tensor matrix_of(LowRankMatrix const& matrix, at::Tensor const& flat) {
  return part(flat, matrix.range).view({matrix.m, matrix.n});
}

}  // namespace

LowRankPlan low_rank_plan(std::int64_t rank, ParameterLayout const& layout, FlatRange range) {
  LowRankPlan plan;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    auto const& entry = layout.entries()[i];
    if (entry.offset < range.begin || entry.offset >= range.end) continue;
    auto const numel = entry.spec.numel();
    FlatRange const own{entry.offset, entry.offset + numel};
    auto const m = entry.spec.shape.size() < 2 ? 1 : entry.spec.shape.front(), n = numel / m;
    if (low_rank_code::pays(rank, m, n)) {
      plan.matrices.push_back({i, own, m, n, plan.first, plan.second});
      plan.first += ParameterLayout::aligned(rank * m);
      plan.second += ParameterLayout::aligned(rank * n);
    } else {
      plan.plain.push_back({own, plan.first});
      plan.first += ParameterLayout::aligned(numel);
    }
  }
  return plan;
}

std::int64_t LowRankPlan::matrix_elements() const {
  std::int64_t sum = 0;
  for (auto const& matrix : matrices) sum += matrix.range.size();
  return sum;
}

void LowRankGradients::revive(LowRankPlan const& plan, at::Tensor const& second,
                              std::int64_t step) const {
  constexpr int entry_bits = 24;
  for (auto const& matrix : plan.matrices)
    low_rank_code::revive(q_of(matrix, second), random_,
                          static_cast<std::uint64_t>(step) << entry_bits | matrix.entry);
}

void LowRankGradients::add(LowRankPlan const& plan, at::Tensor const& gradients,
                           at::Tensor const& residual, at::Tensor const& second,
                           at::Tensor const& first) const {
  for (auto const& matrix : plan.matrices) {
    auto const own = matrix_of(matrix, residual);
    own.add_(matrix_of(matrix, gradients));
    low_rank_code::project(own, q_of(matrix, second), p_of(matrix, first));
  }
  for (auto const& [range, place] : plan.plain)
    first.narrow(0, place, range.size()).copy_(part(gradients, range));
}

void LowRankGradients::orthogonalise(LowRankPlan const& plan, at::Tensor const& first) const {
  for (auto const& matrix : plan.matrices)
    low_rank_code::orthogonalise(numbers_of(p_of(matrix, first)), rank_);
}

void LowRankGradients::subtract(LowRankPlan const& plan, at::Tensor const& first,
                                at::Tensor const& residual, at::Tensor const& second) const {
  for (auto const& matrix : plan.matrices) {
    auto const own = matrix_of(matrix, residual);
    low_rank_code::project_back(own, p_of(matrix, first), q_of(matrix, second));
    low_rank_code::subtract(own, p_of(matrix, first), q_of(matrix, second));
  }
}

void LowRankGradients::multiply(LowRankPlan const& plan, at::Tensor const& first,
                                at::Tensor const& second, at::Tensor const& gradients) const {
  for (auto const& matrix : plan.matrices)
    low_rank_code::multiply(matrix_of(matrix, gradients), p_of(matrix, first),
                            q_of(matrix, second));
  for (auto const& [range, place] : plan.plain)
    part(gradients, range).copy_(first.narrow(0, place, range.size()));
}

std::vector<StatePiece> LowRankGradients::pieces_of(LowRankPlan const& plan,
                                                    at::Tensor const& second) const {
  std::vector<StatePiece> pieces;
  for (auto const& matrix : plan.matrices) {
    auto const elements = rank_ * matrix.n;
    pieces.push_back({matrix.entry, {0, elements}, {second.narrow(0, matrix.q, elements)}});
  }
  return pieces;
}

}  // namespace stratagem
