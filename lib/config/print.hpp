#pragma once

#include <map>
#include <string>

#include "plan/run_config.hpp"

namespace stratagem {

/// The whole configuration as YAML that parse_config reads back as an equal one, whatever the
/// environment.
std::string print_config(RunConfig const& config);

/// The values as they are printed, by path.
std::map<std::string, std::string> config_values(RunConfig const& config);

}  // namespace stratagem
