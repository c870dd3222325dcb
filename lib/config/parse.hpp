#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/keys.hpp"
#include "config/problems.hpp"
#include "keys/variables.hpp"
#include "plan/run_config.hpp"

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

/// The same for sections that were read already, and may come from several places. `begin` is where
/// a problem of no key is. Problems are collected, not thrown: while there are any, the
/// configuration that is returned means nothing.
RunConfig read_config(Document document, Place const& begin,
                      std::vector<std::string> const& overrides, KnownNames const& names,
                      Environment const& environment, Problems& problems);

/// Problems of keys and values by themselves, of parts of configurations: the strategy and what
/// else has to be there may stand in other parts.
void check_alone(std::vector<Document> const& parts, std::vector<std::string> const& overrides,
                 KnownNames const& names, Environment const& environment, Problems& problems);

}  // namespace stratagem
