#pragma once

#include <string>

#include "train/run_config.hpp"

namespace stratagem {

/// The whole configuration as YAML that parse_config reads back as an equal one, whatever the
/// environment.
std::string print_config(RunConfig const& config);

}  // namespace stratagem
