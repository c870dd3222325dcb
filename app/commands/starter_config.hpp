#pragma once

#include <string>
#include <vector>

#include "config/keys.hpp"

namespace stratagem::app {

/// What a first configuration says; the rest are the defaults.
struct Starter {
  std::string model, dataset, strategy;
  int ranks = 0;  ///< 0: as many as are started
  int global_batch = 64;
};

/// A configuration file in which the keys that matter first stand with their meanings: those that
/// `starter` says with values, others as comments with their defaults.
std::string starter_config(Starter const& starter, std::vector<KeyDescription> const& keys);

}  // namespace stratagem::app
