#pragma once

#include <filesystem>
#include <string>

namespace stratagem {

/// Who this process is, for people: "user anna, process 4711 on gpu012, job 93_4, since ...".
std::string who_and_where();

/// A file that one process at a time holds locked, and that tells who it is. The system gives the
/// lock back when the process ends, however it does.
class DirectoryLock {
 public:
  /// Error(usage) naming the holder when another process has it; Error(io) when the file cannot be
  /// written. Where the file system knows no locks, nothing is locked and is_held() tells.
  explicit DirectoryLock(std::filesystem::path file);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock const&) = delete;
  DirectoryLock& operator=(DirectoryLock const&) = delete;

  bool is_held() const { return held_; }

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace stratagem
