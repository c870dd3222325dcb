#pragma once

#include <string>
#include <vector>

#include "app/options.hpp"
#include "config/keys.hpp"
#include "train/run_config.hpp"

namespace stratagem::app {

/// Declares CONFIG, -s and what stands for an override of its own: --out, --max-steps.
void add_configuration(Options& options);

/// CONFIG with all overrides. Error(usage) listing all problems.
RunConfig read_configuration(Options const& options);

/// The datasets and models there are.
KnownNames known_names();

}  // namespace stratagem::app
