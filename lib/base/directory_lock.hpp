#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace stratagem {

/// Who this process is, for people: "user anna, process 4711 on gpu012, job 93_4, since ...".
std::string who_and_where();

/// Another process has the lock: Error(usage) naming it.
class LockedError : public Error {
 public:
  LockedError(std::filesystem::path const& file, std::string holder);

  std::string const& holder() const { return holder_; }

 private:
  std::string holder_;
};

/// A file that one process at a time holds locked, and that tells who it is. It is there as long
/// as the lock, and stays where its process was killed; the system gives the lock back in any case.
/// The folder may be renamed meanwhile.
class DirectoryLock {
 public:
  /// LockedError when another process has it; Error(io) when the file cannot be written. Where the
  /// file system knows no locks, nothing is locked and is_held() tells.
  explicit DirectoryLock(std::filesystem::path const& file);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock const&) = delete;
  DirectoryLock& operator=(DirectoryLock const&) = delete;

  bool is_held() const { return held_; }
  /// The folder that holds the file is still the one of this name.
  bool is_in(std::filesystem::path const& folder) const;

 private:
  /// False when the file lost its name before it was locked.
  bool take(std::filesystem::path const& file);
  void close();

  std::string name_;
  int folder_ = -1, descriptor_ = -1;
  bool held_ = false;
};

}  // namespace stratagem
