#pragma once

#include <filesystem>

#include "conformance/training.hpp"
#include "strategy/ps/offline/simulation.hpp"

namespace stratagem::test {

/// The parameters at the end of an asynchronous training, made again in this process alone from the
/// records of its servers: rank-<r>.h5 of `folder`, of so many ranks.
NamedTensors replay(Training const& training, int ranks, std::filesystem::path const& folder);

/// A training of the parameter server of `training` whose workers only a clock tells apart.
struct Simulated {
  NamedTensors parameters;
  SimulatedCounts counts;
};
Simulated simulate(Training const& training, int workers, ClusterModel const& cluster = {});

/// The names in `a` whose tensors are not those of `b`, bit for bit.
std::vector<std::string> differences(NamedTensors const& a, NamedTensors const& b);

}  // namespace stratagem::test
