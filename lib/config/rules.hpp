#pragma once

#include "config/given.hpp"
#include "config/problems.hpp"
#include "keys/variables.hpp"
#include "plan/run_config.hpp"

namespace stratagem {

/// Fills in what follows from other keys or the environment and was not given.
void derive_defaults(RunConfig& config, Given const& given, Environment const& environment);

/// The rules that join several keys and need neither data nor machine.
void check_rules(RunConfig const& config, Given const& given, Problems& problems);

}  // namespace stratagem
