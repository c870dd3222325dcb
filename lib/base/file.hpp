#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/exit_code.hpp"

namespace stratagem {

/// More than any text that this program writes, or that is written for it, has [bytes].
inline constexpr std::uintmax_t most_text = 64 << 20;

/// Whole content. Error(code) naming the path and the reason when it cannot be read, is no regular
/// file (a pipe is not waited for), or has more than `most` bytes, which are then not read.
std::vector<std::byte> read_bytes(std::filesystem::path const& path, ExitCode code,
                                  std::uintmax_t most);
std::string read_text(std::filesystem::path const& path, ExitCode code,
                      std::uintmax_t most = most_text);

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
