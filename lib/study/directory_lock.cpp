#include "study/directory_lock.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {

std::string who_and_where() {
  auto const* user = ::getpwuid(::geteuid());
  char const* const job = std::getenv("SLURM_JOB_ID");
  return str("user ", user != nullptr ? user->pw_name : std::to_string(::geteuid()), ", process ",
             ::getpid(), " on ", host_name(), job != nullptr ? str(", job ", job) : "", ", since ",
             utc_time(wall_ns()));
}

DirectoryLock::DirectoryLock(std::filesystem::path file)
    : file_(std::move(file)),
      descriptor_(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0)
    throw Error(ExitCode::io, "cannot create " + file_.string(), std::strerror(errno));
  held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  if (!held_ && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw Error(ExitCode::usage, file_.string() + " is locked",
                std::string(trim(read_text(file_, ExitCode::io))), "wait for it, or end it");
  }
  auto const text = who_and_where() + "\n";
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    int const reason = errno;
    ::close(descriptor_);
    throw Error(ExitCode::io, "cannot write " + file_.string(), std::strerror(reason));
  }
}

/// The file stays: without a lock it says nothing but who was here last.
DirectoryLock::~DirectoryLock() {
  ::close(descriptor_);
}

}  // namespace stratagem
