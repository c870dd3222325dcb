#pragma once

#include <functional>
#include <string>
#include <vector>

#include "keys/value.hpp"

namespace stratagem {

/// Whether `stratagem init` writes the key into a first configuration.
enum class InFirstFile { no, as_comment, yes };

/// One key of the configuration, bound to the variable that holds its value.
struct Key {
  std::string path;  ///< "optimizer.lr"; within section `optimizer` also "lr"
  Value value;
  std::string meaning;
  bool required = false;
  InFirstFile in_first_file = InFirstFile::no;
  std::string instead = {};  ///< path of another key that may be given where this one is required
};

using Keys = std::vector<Key>;

/// What is wrong with a value beside those of other keys: "is true, which needs ...".
struct Contradiction {
  std::string name;  ///< of the key within its section
  std::string message;
};

/// Whether a user gave this key of a section.
using GivenKeys = std::function<bool(std::string const& name)>;

}  // namespace stratagem
