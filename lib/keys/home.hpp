#pragma once

#include <optional>
#include <string>

#include "keys/variables.hpp"

namespace stratagem {

/// A path as a shell reads it: a leading ~/, or ~ alone, is the home folder. `complaint` where that
/// is not known, and for ~user: nothing is to be written into a folder that is called ~.
struct HomePath {
  std::string path;
  std::optional<std::string> complaint;
};
HomePath expand_home(std::string const& path, Environment const& environment);

}  // namespace stratagem
