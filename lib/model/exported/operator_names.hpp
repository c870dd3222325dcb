#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace stratagem {

inline bool is_of(std::span<std::string_view const> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace stratagem
