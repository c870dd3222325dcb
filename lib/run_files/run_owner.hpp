#pragma once

#include "run_files/outcome.hpp"

namespace stratagem {

/// True while the process that writes a run directory lives, asked on its host. Its number alone
/// does not tell: once the node or the container has started again, another process may have it,
/// which then began after the last heartbeat.
bool owner_lives(Outcome const& outcome);

}  // namespace stratagem
