#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/exit_code.hpp"

namespace stratagem {

/// Larger than any text that this program writes or reads [bytes].
inline constexpr std::uintmax_t most_text = 64 << 20;

/// Whole content. Error(code) with path and reason if the file cannot be read, is not a regular
/// file (so it never waits for a pipe), or has more than `most` bytes, which are then not read.
std::vector<std::byte> read_bytes(std::filesystem::path const& path, ExitCode code,
                                  std::uintmax_t most);
std::string read_text(std::filesystem::path const& path, ExitCode code,
                      std::uintmax_t most = most_text);

/// Error(io) if `path` is a device, a pipe or a folder: what is written beside it and gets its name
/// would take its place. A link is replaced, and what it leads to stays.
void require_regular_or_none(std::filesystem::path const& path);

/// Writes to a temporary file next to `path`, fsyncs it, and renames it to `path`: a reader sees
/// the old content or the new. Error(io) if any of these steps fails, or `path` is a device, a pipe
/// or a folder; then it is unchanged.
void replace_file(std::filesystem::path const& path, std::string_view content);

/// Appends; every line reaches the kernel before the call returns. Error(io) on failure.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path const& path);
  ~AppendFile();
  AppendFile(AppendFile const&) = delete;
  AppendFile& operator=(AppendFile const&) = delete;

  void write(std::string_view text);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace stratagem
