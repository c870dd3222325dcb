#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/layers/maps.hpp"

namespace stratagem::gpu {

/// Two numbers that are added up for each column.
struct Sums {
  float first = 0, second = 0;

  void add(Sums const& other) {
    first += other.first;
    second += other.second;
  }
};

/// Over the rows of a slice, in the order of a block of threads. `term(row)`.
template <class Term>
Sums sum_of_slice(ColumnSums const& order, std::int64_t begin, std::int64_t end, Term const& term) {
  std::vector<Sums> threads(static_cast<std::size_t>(order.strides()));
  for (auto row = begin; row < end; ++row)
    threads[static_cast<std::size_t>((row - begin) % order.strides())].add(term(row));
  std::size_t const of_warp = ColumnSums::warp / order.vectors;
  Sums sum;
  for (std::size_t warp = 0; warp < threads.size(); warp += of_warp) {
    for (auto apart = of_warp / 2; apart > 0; apart /= 2)
      for (std::size_t i = 0; i < apart; ++i) threads[warp + i].add(threads[warp + i + apart]);
    sum.add(threads[warp]);
  }
  return sum;
}

/// Over all rows.
template <class Term>
Sums sum_of(ColumnSums const& order, std::int64_t rows, Term const& term) {
  if (order.one_slice) return sum_of_slice(order, 0, rows, term);
  std::vector<Sums> parts(static_cast<std::size_t>(order.parts()));
  for (std::int64_t slice = 0; slice < order.slices; ++slice) {
    auto const begin = std::min(slice * order.rows, rows);
    parts[static_cast<std::size_t>(slice % order.parts())].add(
        sum_of_slice(order, begin, std::min(begin + order.rows, rows), term));
  }
  Sums sum;
  for (auto const& part : parts) sum.add(part);
  return sum;
}

}  // namespace stratagem::gpu
