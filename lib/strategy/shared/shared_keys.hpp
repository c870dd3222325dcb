#pragma once

#include "keys/key.hpp"
#include "strategy/shared/accumulate.hpp"

namespace stratagem {

// Keys that several strategies have.

Key micro_batches_key(int& micro_batches);
Key accumulate_key(Accumulate& accumulate);

}  // namespace stratagem
