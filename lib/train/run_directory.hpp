#pragma once

#include <filesystem>
#include <string>

namespace stratagem {

/// What to do about a run directory that is there already.
enum class Existing { refuse, resume, overwrite };

/// A claimed run directory.
struct RunDirectory {
  std::filesystem::path path;
  int attempt = 0;                ///< 0, or one more than the last
  bool already_complete = false;  ///< resume of a finished run: there is nothing to do

  std::filesystem::path trace_folder() const {
    return path / "trace" / ("a" + std::to_string(attempt));
  }
  std::filesystem::path trace_file(int rank) const;
  std::filesystem::path log_file(int rank) const;
};

/// With those above it. Error(io) naming --out, by which users choose where results go.
void make_folder(std::filesystem::path const& path);

/// Makes the directory with its folders, by one process for all. What a run wrote is never
/// overwritten: Error(usage) when the directory holds a run that `existing` does not allow for, or
/// something else; Error(environment) where it would not be safe (require_own_folder()); Error(io)
/// when it cannot be written. With Existing::overwrite the old directory
/// is moved aside.
RunDirectory claim_run_directory(std::filesystem::path const& path, Existing existing);

}  // namespace stratagem
