#include "predict/room.hpp"

#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace stratagem {

std::string Room::verdict(std::int64_t needed) const {
  if (!known()) return "-";
  auto const left = static_cast<double>(spare(needed));
  if (left < 0) return "lacks " + format_bytes(-left);
  return str(tight(needed) ? "tight, " : "fits, ", format_bytes(left), " spare");
}

nlohmann::json Room::json(std::int64_t needed) const {
  return {{"memory_B", bytes},
          {"reserve_B", reserve},
          {"spare_B", spare(needed)},
          {"fits", fits(needed)},
          {"tight", tight(needed)}};
}

}  // namespace stratagem
