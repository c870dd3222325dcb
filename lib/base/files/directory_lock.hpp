#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace stratagem {

/// A description of this process for people: "user anna, process 4711 on gpu012, job 93_4, since
/// ...".
std::string who_and_where();

/// Another process has the lock: Error(usage) that names it.
class LockedError : public Error {
 public:
  LockedError(std::filesystem::path const& file, std::string holder);

  std::string const& holder() const { return holder_; }

 private:
  std::string holder_;
};

/// A file that one process at a time holds locked, and that names this process. It exists as long
/// as the lock, or longer if the process was killed; the system releases the lock in any case. The
/// folder may be renamed meanwhile.
class DirectoryLock {
 public:
  /// LockedError if another process has it; Error(io) if the file cannot be written. On a file
  /// system without locks nothing is locked, and is_held() returns false.
  explicit DirectoryLock(std::filesystem::path const& file);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock const&) = delete;
  DirectoryLock& operator=(DirectoryLock const&) = delete;

  bool is_held() const { return held_; }
  /// The folder that contains the file still has this name.
  bool is_in(std::filesystem::path const& folder) const;

 private:
  /// False if the file lost its name before it was locked.
  bool take(std::filesystem::path const& file);
  void close();

  std::string name_;
  int folder_ = -1, descriptor_ = -1;
  bool held_ = false;
};

}  // namespace stratagem
