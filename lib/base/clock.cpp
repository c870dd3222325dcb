#include "base/clock.hpp"

#include <array>
#include <ctime>

namespace stratagem {

std::string utc_time(std::int64_t wall_ns) {
  auto const seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm broken{};
  gmtime_r(&seconds, &broken);
  std::array<char, 32> text{};
  auto const length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &broken);
  return {text.data(), length};
}

}  // namespace stratagem
