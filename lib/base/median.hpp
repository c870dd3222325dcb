#pragma once

#include <algorithm>
#include <limits>
#include <vector>

namespace stratagem {

/// For an even number of values, the upper one of the two in the middle. NaN if there are none.
inline double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace stratagem
