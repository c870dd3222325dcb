#include "compress/low_rank_code.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

namespace stratagem::low_rank_code {
namespace {

std::span<float> row_of(at::Tensor const& matrix, std::int64_t row) {
  auto const columns = matrix.size(1);
  return {matrix.data_ptr<float>() + row * columns, static_cast<std::size_t>(columns)};
}

bool is_dead(std::span<float const> row) {
  return std::ranges::all_of(row, [](float value) { return value == 0; }) ||
         !std::ranges::all_of(row, [](float value) { return std::isfinite(value); });
}

/// out <- a b.
void product(at::Tensor out, at::Tensor const& a, at::Tensor const& b) {
  at::mm_out(out, a, b);
}

double product_of(std::span<double const> a, std::span<double const> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void revive(at::Tensor const& q, CounterRandom const& random, std::uint64_t sequence) {
  for (std::int64_t i = 0; i < q.size(0); ++i) {
    auto const row = row_of(q, i);
    if (!is_dead(row)) continue;
    auto block = static_cast<std::uint64_t>(i) << 32;  // a row draws numbers of its own
    for (std::size_t j = 0; j < row.size(); j += 4) {
      auto const drawn = to_normal(random.block(block++, sequence));
      for (std::size_t k = 0; k < std::min<std::size_t>(4, row.size() - j); ++k)
        row[j + k] = static_cast<float>(drawn[k]);
    }
  }
}

void project(at::Tensor const& m, at::Tensor const& q, at::Tensor const& p) {
  product(p, q, m.t());
}

void orthogonalise(std::span<float> p, std::int64_t rank) {
  constexpr double rounding = 1e-6;  // of numbers that were summed in fp32
  auto const count = static_cast<std::size_t>(rank), size = p.size() / count;
  std::vector<double> all(p.begin(), p.end());
  auto const row = [&](std::size_t i) { return std::span(all).subspan(i * size, size); };
  for (std::size_t i = 0; i < count; ++i) {
    auto const own = row(i);
    auto const before = std::sqrt(product_of(own, own));
    for (std::size_t j = 0; j < i; ++j) {
      auto const other = row(j);
      auto const share = product_of(own, other);
      for (std::size_t k = 0; k < size; ++k) own[k] -= share * other[k];
    }
    auto const norm = std::sqrt(product_of(own, own));
    // What is not finite stays so: that must be seen.
    bool const nothing = std::isfinite(norm) && norm <= rounding * before;
    for (auto& value : own) value = nothing ? 0 : value / norm;
  }
  std::ranges::transform(all, p.begin(), [](double value) { return static_cast<float>(value); });
}

void project_back(at::Tensor const& m, at::Tensor const& p, at::Tensor const& q) {
  product(q, p, m);
}

void subtract(at::Tensor const& m, at::Tensor const& p, at::Tensor const& q) {
  m.addmm_(p.t(), q, 1, -1);
}

void multiply(at::Tensor const& m, at::Tensor const& p, at::Tensor const& q) {
  product(m, p.t(), q);
}

}  // namespace stratagem::low_rank_code
