#pragma once

#include <string>
#include <vector>

#include "config/keys.hpp"
#include "config/variables.hpp"
#include "train/run_config.hpp"

namespace stratagem {

/// The configuration that a file's text and the overrides "section.key=value" describe. A later
/// override beats an earlier one, and any beats the file; one that names another strategy also
/// takes away the keys that only the file's strategy has. Values may contain ${VARIABLES}. What is
/// not given has its default; the names that follow from others are filled in.
///
/// The schema is closed. Error(usage) lists every problem of file and overrides, a line each:
/// "file:line:col: path: message", with "-s section.key=value" as the place of an override.
RunConfig parse_config(std::string const& text, std::string const& file,
                       std::vector<std::string> const& overrides, KnownNames const& names,
                       Environment const& environment);

}  // namespace stratagem
