#pragma once

#include <filesystem>
#include <string>

#include "base/files/file.hpp"

namespace stratagem {

/// The longest configuration or study that is read [bytes].
inline constexpr std::size_t most_yaml_bytes = 1 << 20;

/// The text of one. Error(usage) where it cannot be read, or is longer.
inline std::string read_yaml_file(std::filesystem::path const& path) {
  return read_text(path, ExitCode::usage, most_yaml_bytes);
}

}  // namespace stratagem
