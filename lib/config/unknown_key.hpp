#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/keys.hpp"

namespace stratagem {

/// Why there is no such key under what was chosen, and which one may have been meant. `keys` are
/// those of all strategies and optimizers.
std::string explain_unknown_key(Entry const& entry, std::vector<KeyDescription> const& keys,
                                Chosen const& chosen);

/// The same for a whole section.
std::string explain_unknown_section(std::string const& name,
                                    std::vector<KeyDescription> const& keys);

}  // namespace stratagem
