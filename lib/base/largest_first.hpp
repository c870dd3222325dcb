#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

namespace stratagem {

/// Assigns each item, the largest first, to the bin that has the least so far (Graham, "Bounds on
/// multiprocessing timing anomalies", 1969). Returns the bin of every item.
inline std::vector<std::size_t> deal_largest_first(std::span<std::int64_t const> sizes,
                                                   std::size_t bins) {
  std::vector<std::size_t> order(sizes.size()), bin_of(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return sizes[i]; });
  std::vector<std::int64_t> loads(bins);
  for (auto const i : order) {
    auto const least = std::ranges::min_element(loads);
    bin_of[i] = static_cast<std::size_t>(least - loads.begin());
    *least += sizes[i];
  }
  return bin_of;
}

}  // namespace stratagem
