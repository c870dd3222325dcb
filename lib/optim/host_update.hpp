#pragma once

#include <cstdint>

#include "optim/element_rule.hpp"

namespace stratagem {

/// Updates the elements [begin, end) on the host, in one pass. True when all gradients are finite.
bool update_on_host(ElementRule const& rule, UpdatedMemory const& memory, std::int64_t begin,
                    std::int64_t end);

}  // namespace stratagem
