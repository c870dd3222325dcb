#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/bad_data.hpp"

namespace stratagem::h5 {

/// What a file is asked about, for messages.
struct ArrayPlace {
  std::filesystem::path const& path;
  std::string const& dataset;

  [[noreturn]] void refuse(std::string const& problem, std::string const& expected,
                           std::string const& found, std::string const& cure) const {
    throw bad_data(str(path.string(), ": dataset ", dataset), problem, expected, found, cure);
  }
};

/// "[100, 28, 28, 1]".
inline std::string shape_text(std::vector<std::int64_t> const& shape,
                              std::string const& separator = ", ") {
  std::vector<std::string> sizes;
  for (auto const size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, separator) + "]";
}

}  // namespace stratagem::h5
