#pragma once

#include <cmath>
#include <cstdint>

#include "h5/reader.hpp"

namespace stratagem::trace {

/// Converts a rank's monotonic times to rank 0's clock, linearly between the first and the last
/// comparison of the two clocks.
class ClockMap {
 public:
  explicit ClockMap(h5::TableData const& clock) {
    auto const& times = clock.integers("monotonic_ns");
    auto const& offsets = clock.integers("offset_to_rank0_ns");
    auto const& uncertainties = clock.integers("uncertainty_ns");
    for (std::size_t row = 0; row < static_cast<std::size_t>(clock.rows); ++row) {
      if (uncertainties[row] == 0) continue;  // not compared: rank 0, or the end of a failed run
      if (first_.time == 0) first_ = {times[row], offsets[row]};
      last_ = {times[row], offsets[row]};
    }
  }

  std::int64_t operator()(std::int64_t time) const {
    if (time <= first_.time || last_.time <= first_.time) return time + first_.offset;
    if (time >= last_.time) return time + last_.offset;
    auto const share =
        static_cast<double>(time - first_.time) / static_cast<double>(last_.time - first_.time);
    return time + first_.offset +
           std::llround(share * static_cast<double>(last_.offset - first_.offset));
  }

 private:
  struct Comparison {
    std::int64_t time = 0, offset = 0;
  };
  Comparison first_, last_;
};

}  // namespace stratagem::trace
