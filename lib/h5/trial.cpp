#include "h5/trial.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem::h5 {
namespace {

constexpr int no_memory = 1;  // exit code of a child

/// More than reading a file of so many bytes can need.
struct Bounds {
  std::uintmax_t computing_s, waiting_s, memory;

  static Bounds of(std::uintmax_t file_bytes) {
    return {.computing_s = 5 + file_bytes / 5'000'000,
            .waiting_s = 20 + file_bytes / 1'000'000,
            .memory = (std::uintmax_t{4} << 30) + 32 * file_bytes};
  }
};

/// Address space of this process at this moment.
std::uintmax_t address_space() {
  std::uintmax_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uintmax_t>(::sysconf(_SC_PAGESIZE));
}

template <class Resource>
void lower(Resource resource, std::uintmax_t limit) {
  rlimit set{};
  if (::getrlimit(resource, &set) != 0) return;
  set.rlim_cur = std::min<rlim_t>(set.rlim_cur, limit);
  ::setrlimit(resource, &set);
}

void keep_within(Bounds const& bounds) {
  for (int const signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGXCPU})
    std::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  lower(RLIMIT_CORE, 0);
  lower(RLIMIT_CPU, bounds.computing_s);
  lower(RLIMIT_AS, address_space() + bounds.memory);
  ::alarm(static_cast<unsigned>(bounds.waiting_s));
}

[[noreturn]] void be_child(Bounds const& bounds, std::function<void()> const& read) {
  keep_within(bounds);
  int code = 0;
  try {
    read();
  } catch (std::bad_alloc const&) {
    code = no_memory;
  } catch (std::exception const&) {
  }
  ::_exit(code);
}

/// Empty if it came to an end.
std::string what_happened(int status) {
  if (WIFSIGNALED(status)) {
    int const signal = WTERMSIG(status);
    if (signal == SIGXCPU || signal == SIGALRM) return "reading it comes to no end";
    if (signal == SIGKILL) return "reading it was killed, as for want of memory";
    return str("reading it crashes: ", ::strsignal(signal));
  }
  return WEXITSTATUS(status) == no_memory ? "reading it takes more memory than it can need" : "";
}

}  // namespace

void try_in_child(std::filesystem::path const& path, std::function<void()> const& read) {
  std::error_code unknown;
  auto const bytes = std::filesystem::file_size(path, unknown);
  auto const bounds = Bounds::of(unknown ? 0 : bytes);
  auto const child = ::fork();
  if (child < 0)
    throw Error(ExitCode::io, "cannot start a process to read " + path.string(),
                std::strerror(errno));
  if (child == 0) be_child(bounds, read);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (auto const why = what_happened(status); !why.empty())
    throw Error(ExitCode::bad_data, path.string() + " is damaged", why);
}

}  // namespace stratagem::h5
