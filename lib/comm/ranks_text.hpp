#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stratagem {

/// "0,2", with `separator` between the numbers.
std::string join_ranks(std::span<int const> ranks, std::string_view separator);

/// "rank 1" or "ranks 0, 2".
std::string list_ranks(std::span<int const> ranks);

}  // namespace stratagem
