#pragma once

#include <filesystem>

#include "conformance/training.hpp"

namespace stratagem::test {

/// The parameters at the end of an asynchronous training, made again in this process alone from the
/// records of its servers: rank-<r>.h5 of `folder`, of so many ranks.
NamedTensors replay(Training const& training, int ranks, std::filesystem::path const& folder);

}  // namespace stratagem::test
