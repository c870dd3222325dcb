#include "base/files/directory_lock.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr int most_tries = 100;

std::string content_of(int descriptor) {
  std::array<char, 512> text{};
  auto const length = ::pread(descriptor, text.data(), text.size(), 0);
  std::string const all(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return all.empty() ? "another process" : std::string(trim(all));
}

/// Whether the name still refers to the open file.
bool same(int descriptor, fs::path const& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

std::string who_and_where() {
  auto const* user = ::getpwuid(::geteuid());
  char const* const job = std::getenv("SLURM_JOB_ID");
  return str("user ", user != nullptr ? user->pw_name : std::to_string(::geteuid()), ", process ",
             ::getpid(), " on ", host_name(), job != nullptr ? str(", job ", job) : "", ", since ",
             utc_time(wall_ns()));
}

LockedError::LockedError(fs::path const& file, std::string holder)
    : Error(ExitCode::usage, file.string() + " is locked", holder, "wait for it, or end it"),
      holder_(std::move(holder)) {}

DirectoryLock::DirectoryLock(fs::path const& file) : name_(file.filename()) {
  try {
    for (int tries = 1; !take(file) && tries < most_tries; ++tries) close();
  } catch (Error const&) {
    if (held_) ::unlinkat(folder_, name_.c_str(), 0);
    close();
    throw;
  }
}

DirectoryLock::~DirectoryLock() {
  ::unlinkat(folder_, name_.c_str(), 0);
  close();
}

bool DirectoryLock::is_in(fs::path const& folder) const {
  return same(folder_, folder);
}

bool DirectoryLock::take(fs::path const& file) {
  auto const home = file.has_parent_path() ? file.parent_path() : fs::path(".");
  folder_ = ::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  descriptor_ = ::openat(folder_, name_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    throw Error(ExitCode::io, "cannot create " + file.string(), std::strerror(errno));
  held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  if (!held_ && errno == EWOULDBLOCK) throw LockedError(file, content_of(descriptor_));
  auto const text = who_and_where() + "\n";
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw Error(ExitCode::io, "cannot write " + file.string(), std::strerror(errno));
  // The previous owner may have removed the file in between, and another process may have created
  // it again.
  return same(descriptor_, file);
}

void DirectoryLock::close() {
  for (int* const descriptor : {&descriptor_, &folder_}) {
    if (*descriptor >= 0) ::close(*descriptor);
    *descriptor = -1;
  }
}

}  // namespace stratagem
