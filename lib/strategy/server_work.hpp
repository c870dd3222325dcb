#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compress/compression.hpp"
#include "optim/optim_config.hpp"

namespace stratagem {

/// The names of what a server may have to do for a push: "sum", "each", "corrected", "look_ahead".
std::vector<std::string_view> server_works();

/// The time of a server for one push to a shard of `elements` fp32 parameters, measured on this
/// machine, with a part of the shard where it is large: to take the gradient out of a message, to
/// apply it, and to put parameters into another [s]. `work` is one of server_works(). With a
/// compression what comes is coded, of whole blocks.
double time_push(std::string_view work, OptimizerConfig const& optimizer, std::int64_t elements,
                 Compression const& compression = {});

}  // namespace stratagem
