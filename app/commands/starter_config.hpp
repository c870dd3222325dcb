#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/keys.hpp"

namespace stratagem::app {

/// What a first configuration says; the rest are the defaults.
struct Starter {
  std::string model, dataset, strategy;  ///< names; of a file or folder, its last name
  std::string model_file, data_path;     ///< empty where the name says it
  std::int64_t input_size = 0;           ///< of a model's file [pixels]; 0: the default
  std::int64_t classes = 0;              ///< of own images; 0: the default
  int ranks = 0;                         ///< 0: as many as are started
  int global_batch = 64;
};

/// A configuration file in which the keys that matter first stand with their meanings: those that
/// `starter` says with values, others as comments with their defaults.
std::string starter_config(Starter const& starter, std::vector<KeyDescription> const& keys);

}  // namespace stratagem::app
