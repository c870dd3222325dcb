#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/files/file.hpp"

namespace stratagem {

enum class LogLevel { error, warning, info, detail };

/// Messages for people. Rank 0 writes to stderr; every rank may also write a file. Safe to call
/// from any thread. If the file cannot be written, one warning is shown and the file is given up.
class Log {
 public:
  /// `to_terminal` is true on rank 0; -q keeps warnings and errors, -v adds details. `color` marks
  /// errors and warnings on the terminal, never in the file.
  Log(int rank, bool to_terminal, LogLevel level, bool color = false)
      : rank_(rank), terminal_(to_terminal), level_(level), color_(color) {}

  /// From now on, lines of every level are also appended to `path`.
  void keep_in(std::filesystem::path const& path);

  void error(std::string_view text) { write(LogLevel::error, text); }
  void warning(std::string_view text) { write(LogLevel::warning, text); }
  void info(std::string_view text) { write(LogLevel::info, text); }
  void detail(std::string_view text) { write(LogLevel::detail, text); }

 private:
  void write(LogLevel level, std::string_view text);

  std::mutex mutex_;
  int rank_;
  bool terminal_;
  LogLevel level_;
  bool color_;
  std::unique_ptr<AppendFile> file_;
};

}  // namespace stratagem
