#pragma once

#include <string_view>

namespace stratagem {

/// Facts about the build, from the time when the program was configured and compiled.
struct BuildInfo {
  std::string_view version;     ///< of stratagem
  std::string_view git_sha;     ///< "unknown" outside a git checkout
  bool git_dirty;               ///< uncommitted changes when configured
  std::string_view build_type;  ///< Release, Debug, ...
  std::string_view compiler;    ///< name and version
  std::string_view cxx_flags;
  std::string_view flavour;   ///< cpu or cuda
  std::string_view libtorch;  ///< version compiled against
};

BuildInfo const& build_info();

}  // namespace stratagem
