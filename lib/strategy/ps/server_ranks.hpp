#pragma once

#include "strategy/placement.hpp"
#include "strategy/ps/ps_config.hpp"

namespace stratagem {

/// Who serves and who computes. Error(usage) unless there are a server and a worker, or if
/// `listed_ranks` does not name as many ranks as there are servers, each once.
Placement place_servers(PsConfig const& config, int ranks);

}  // namespace stratagem
