#include "app/standard_streams.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace stratagem::app {
namespace {

/// What the file system tells at the end, such as a quota over a network, it tells at a close.
bool reached_the_file() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) return false;
  int const copy = ::dup(STDOUT_FILENO);
  return copy < 0 || ::close(copy) == 0;
}

bool reader_has_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

void secure_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (int const descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // Where there was no stdout, writing to it still fails.
    static_cast<void>(::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

ExitCode after_writing_all(ExitCode code) {
  std::cout.flush();
  if (reached_the_file()) return code;
  int const reason = errno;
  if (reader_has_gone()) {
    if (code != ExitCode::done) return code;
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  std::cerr << "stratagem: error: cannot write all of the output to stdout";
  if (reason != 0) std::cerr << " (" << std::strerror(reason) << ")";
  std::cerr << "; it is incomplete\n";
  return code == ExitCode::done ? ExitCode::io : code;
}

}  // namespace stratagem::app
