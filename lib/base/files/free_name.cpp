#include "base/files/free_name.hpp"

#include <string>

namespace stratagem {

std::filesystem::path free_name(std::filesystem::path const& path) {
  namespace fs = std::filesystem;
  auto name = path;
  for (int number = 2; fs::exists(fs::symlink_status(name)); ++number) {
    name = path;
    name += "-" + std::to_string(number);
  }
  return name;
}

}  // namespace stratagem
