#include "base/console/log.hpp"

#include <cstdio>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/console/terminal.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

char const* prefix(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "error: ";
    case LogLevel::warning:
      return "warning: ";
    default:
      return "";
  }
}

/// Red for errors, yellow for warnings.
std::string colored(LogLevel level) {
  if (level > LogLevel::warning) return prefix(level);
  return str(level == LogLevel::error ? "\033[31m" : "\033[33m", prefix(level), "\033[0m");
}

}  // namespace

void Log::keep_in(std::filesystem::path const& path) {
  std::lock_guard const lock(mutex_);
  file_ = std::make_unique<AppendFile>(path);
}

void Log::write(LogLevel level, std::string_view text) {
  std::lock_guard const lock(mutex_);
  // Errors of other ranks are shown too, with their rank: perhaps only that rank knows the reason.
  bool const shown = level <= level_ && (terminal_ || level == LogLevel::error);
  if (shown) {
    auto const origin = terminal_ ? std::string{} : str("rank ", rank_, ": ");
    auto const line =
        str("stratagem: ", color_ ? colored(level) : prefix(level), origin, text, "\n");
    // The terminal's current line may contain a progress bar.
    auto const text_shown =
        (color_ ? "\r\033[K" : "") + fold_lines(line, terminal_columns(STDERR_FILENO));
    std::fwrite(text_shown.data(), 1, text_shown.size(), stderr);
    std::fflush(stderr);
  }
  if (!file_) return;
  try {
    file_->write(str(utc_time(wall_ns()), " ", prefix(level), text, "\n"));
  } catch (Error const& failure) {
    file_.reset();
    std::fprintf(stderr, "stratagem: warning: rank %d: no further log: %s\n", rank_,
                 failure.what());
  }
}

}  // namespace stratagem
