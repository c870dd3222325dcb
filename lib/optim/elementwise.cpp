#include "optim/elementwise.hpp"

#include <atomic>

#include <ATen/Parallel.h>

namespace stratagem {

bool for_slices(std::int64_t elements,
                std::function<bool(std::int64_t begin, std::int64_t end)> const& update) {
  std::atomic<bool> all = true;
  at::parallel_for(0, elements, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    if (!update(begin, end)) all = false;
  });
  return all;
}

}  // namespace stratagem
