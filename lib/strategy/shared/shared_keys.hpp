#pragma once

#include "compress/compression.hpp"
#include "keys/key.hpp"
#include "strategy/shared/accumulate.hpp"

namespace stratagem {

// Keys that several strategies have.

Key micro_batches_key(int& micro_batches);
Key accumulate_key(Accumulate& accumulate);
/// compression, of those that write blocks; rounding, error_feedback.
Keys block_code_keys(Compression& compression);
/// Of parameters that are gathered.
Key parameter_compression_key(Code& code);
/// All codes, and what they have.
Keys compression_keys(Compression& compression);

}  // namespace stratagem
