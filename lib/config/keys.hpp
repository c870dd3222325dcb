#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "keys/key.hpp"
#include "plan/run_config.hpp"

namespace stratagem {

/// The names that the libraries of data and models answer to.
struct KnownNames {
  std::vector<std::string> datasets;
  std::vector<std::string> models;
};

/// The schema: every key that `config` has with its strategy, in the order in which they are
/// written. Valid while `config` lives and keeps the kind of its strategy.
Keys keys_of(RunConfig& config, KnownNames const& names);

/// "optimizer.lr" -> "optimizer"; "" for a key outside of sections.
std::string section_of(std::string const& path);
/// "optimizer.lr" -> "lr".
std::string name_in_section(std::string const& path);

/// One row of `stratagem list keys`.
struct KeyDescription {
  std::string path;
  std::string type;
  std::string default_value;  ///< "required" where there is none
  std::string range;
  std::string meaning;
  InFirstFile in_first_file = InFirstFile::no;
  std::vector<std::string> strategies;  ///< that have the key; empty: all

  bool belongs_to(std::string const& strategy) const {
    return strategies.empty() || std::ranges::count(strategies, strategy) > 0;
  }
};

/// The keys of all strategies, section by section.
std::vector<KeyDescription> describe_keys(KnownNames const& names);

}  // namespace stratagem
