#include "comm/watchdog/slow_ranks.hpp"

#include <algorithm>
#include <cstdint>

namespace stratagem {
namespace {

constexpr double slow_factor = 1.5;
constexpr std::int64_t slow_ns = 1'000'000;  // and at least so much more

}  // namespace

std::vector<std::size_t> slow_among(std::span<Glance const> glances) {
  std::vector<std::size_t> slow;
  for (std::size_t slot = 0; slot < glances.size(); ++slot) {
    std::vector<std::int64_t> others;
    for (std::size_t other = 0; other < glances.size(); ++other)
      if (other != slot && glances[other].busy_ns > 0) others.push_back(glances[other].busy_ns);
    if (others.empty()) continue;
    auto const middle = others.begin() + static_cast<std::ptrdiff_t>((others.size() - 1) / 2);
    std::ranges::nth_element(others, middle);
    auto const busy = glances[slot].busy_ns;
    if (static_cast<double>(busy) > slow_factor * static_cast<double>(*middle) &&
        busy > *middle + slow_ns)
      slow.push_back(slot);
  }
  return slow;
}

std::vector<std::size_t> SlowRanks::look(std::chrono::nanoseconds elapsed,
                                         std::span<Glance const> glances) {
  auto const slow = slow_among(glances);
  bool const gap = elapsed > FailureDetector::longest_look;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto& slot = slots_[i];
    slot.length += elapsed;
    if (std::ranges::count(slow, i) > 0) slot.slow += elapsed;
    if (gap || slot.slow < share * slot.length) slot.length = slot.slow = {};
    if (slot.found || slot.length < lasts) continue;
    slot.found = true;
    found.push_back(i);
  }
  return found;
}

}  // namespace stratagem
