#include "base/files/time_name.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace stratagem {

std::string time_name(std::int64_t wall_ns) {
  auto name = utc_time(wall_ns);
  std::ranges::replace(name, ':', '-');
  return name;
}

}  // namespace stratagem
