#pragma once

#include <string>

#include "app/options.hpp"

namespace stratagem::app {

/// What --help says of a command, in at most 80 columns.
std::string help_text(Options const& options);

/// What --help says of the program: its commands and exit codes.
std::string usage_text();

/// Error(usage) for a name that no command has, with the one that may have been meant.
Command const& find_command(std::string const& name);

}  // namespace stratagem::app
