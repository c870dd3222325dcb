#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/exit_code.hpp"

namespace stratagem {

/// Whole content. Error(code) naming the path and the system's reason when it cannot be read.
std::vector<std::byte> read_bytes(std::filesystem::path const& path, ExitCode code);
std::string read_text(std::filesystem::path const& path, ExitCode code);

/// Written to a temporary beside `path`, fsynced, renamed over it: a reader sees the old content or
/// the new. Error(io) when any of these steps fails; then `path` is as it was.
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
