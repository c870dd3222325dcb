#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/keys.hpp"

namespace stratagem {

/// Why there is no such key under `strategy`, and which one may have been meant. `keys` are those
/// of all strategies.
std::string explain_unknown_key(Entry const& entry, std::vector<KeyDescription> const& keys,
                                std::string const& strategy);

/// The same for a whole section.
std::string explain_unknown_section(std::string const& name,
                                    std::vector<KeyDescription> const& keys);

}  // namespace stratagem
