#pragma once

#include <algorithm>
#include <functional>
#include <map>
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

/// The type of keys that name a file or folder: texts in which a leading ~/ is expanded.
inline constexpr char path_type[] = "path";

/// The schema: every key that `config` has with its strategy, in the order in which they are
/// written. Valid while `config` lives and keeps the kind of its strategy.
Keys keys_of(RunConfig& config, KnownNames const& names);

/// "optimizer.lr" -> "optimizer"; "" for a key outside of sections.
std::string section_of(std::string const& path);
/// "optimizer.lr" -> "lr".
std::string name_in_section(std::string const& path);

/// One of those between which the `name` of a section chooses: a strategy, an optimizer.
struct SectionChoice {
  std::string section;
  std::string name;
  std::function<void(RunConfig& config)> choose;  ///< puts it there, with its defaults
};
/// All there are; the order within a section is that of its names.
std::vector<SectionChoice> section_choices();

/// The names that were chosen, by section. A section that is not here may have the keys of any.
using Chosen = std::map<std::string, std::string>;

/// One row of `stratagem list keys`.
struct KeyDescription {
  std::string path;
  std::string type;
  std::string default_value;  ///< "required" where there is none
  std::string range;
  std::string meaning;
  InFirstFile in_first_file = InFirstFile::no;
  std::string chooser;              ///< section whose name decides whether there is the key
  std::vector<std::string> owners;  ///< names under which there is; empty: all
  std::string other_defaults;       ///< of some of them: "; adamw: 0.001"

  bool belongs_to(Chosen const& chosen) const {
    auto const name = chosen.find(chooser);
    return owners.empty() || name == chosen.end() || std::ranges::count(owners, name->second) > 0;
  }
};

/// The keys of all strategies and optimizers, section by section.
std::vector<KeyDescription> describe_keys(KnownNames const& names);

}  // namespace stratagem
