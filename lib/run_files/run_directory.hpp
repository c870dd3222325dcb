#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/files/directory_lock.hpp"

namespace stratagem {

/// What to do about a run directory that is there already. `extend`: resume, also where it has come
/// to its end.
enum class Existing { refuse, resume, extend, overwrite };

/// A claimed run directory.
struct RunDirectory {
  std::filesystem::path path;     ///< absolute: ranks may have started in other folders
  int attempt = 0;                ///< 0, or one more than the last
  bool already_complete = false;  ///< resume of a finished run: there is nothing to do
  /// Of the process that claimed it, until all copies are gone.
  std::shared_ptr<DirectoryLock const> lock;

  /// Nobody has removed or renamed it since it was claimed, as far as this process can tell.
  bool is_there() const;

  std::filesystem::path trace_folder() const {
    return path / "trace" / ("a" + std::to_string(attempt));
  }
  std::filesystem::path trace_file(int rank) const;
  std::filesystem::path log_file(int rank) const;
};

/// With those above it. Error(io) naming --out, by which users choose where results go.
void make_folder(std::filesystem::path const& path);

/// Makes and locks the directory, by one process for all. What a run wrote is never overwritten:
/// Error(usage) when the directory holds a run that `existing` does not allow for, or something
/// else, or while another process writes it; Error(environment) where it would not be safe
/// (require_own_folder()); Error(io) when it cannot be written. With Existing::overwrite the old
/// directory is moved aside. What is refused is left as it is.
RunDirectory claim_run_directory(std::filesystem::path const& path, Existing existing);

/// Makes the folders of a new attempt. Error(usage) when another process has just done so, which
/// may happen where the file system has no locks; Error(io).
void begin_attempt(RunDirectory const& directory);

}  // namespace stratagem
