#pragma once

#include <span>
#include <string>

namespace stratagem {

/// "rank 1" or "ranks 0, 2".
std::string list_ranks(std::span<int const> ranks);

}  // namespace stratagem
