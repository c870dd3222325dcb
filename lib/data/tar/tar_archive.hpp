#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stratagem {

/// A regular file in a tar archive.
struct TarMember {
  std::string name;
  std::int64_t offset = 0;  ///< of its content in the archive [B]
  std::int64_t size = 0;    ///< of its content [B]
};

/// All regular files of a tar archive in their order, without folders. Reads headers only: of v7,
/// ustar, GNU tar and pax (POSIX.1-2001, pax, "ustar Interchange Format" and "pax Interchange
/// Format").
/// Error(bad_data) names file and member if the archive is compressed, damaged or cut, if it holds
/// anything but files and folders, or if a name is unusable or stands there twice.
std::vector<TarMember> list_members(std::filesystem::path const& path);

}  // namespace stratagem
