#include "study/held_signals.hpp"

#include <cerrno>
#include <ctime>

#include <sys/wait.h>

namespace stratagem {

HeldSignals::HeldSignals() {
  ::sigemptyset(&held_);
  for (int const signal : {SIGUSR1, SIGTERM, SIGCHLD}) ::sigaddset(&held_, signal);
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() {
  while (next(std::chrono::milliseconds(0)) == SIGCHLD) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

sigset_t HeldSignals::for_child() const {
  auto mask = before_;
  for (int const signal : {SIGUSR1, SIGTERM, SIGCHLD}) ::sigdelset(&mask, signal);
  return mask;
}

/// One of them, SIGCHLD too; 0 when none came in time.
int HeldSignals::next(std::chrono::milliseconds patience) {
  timespec const wait{.tv_sec = patience.count() / 1000,
                      .tv_nsec = patience.count() % 1000 * 1'000'000};
  int const signal = ::sigtimedwait(&held_, nullptr, &wait);
  return signal > 0 ? signal : 0;
}

int HeldSignals::take() {
  for (;;) {
    int const signal = next(std::chrono::milliseconds(0));
    if (signal != SIGCHLD) return signal;
  }
}

int HeldSignals::wait_for(pid_t child, int& passed_on) {
  for (;;) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    // Not for ever: a SIGCHLD may stand for several children.
    int const signal = next(std::chrono::milliseconds(500));
    if (signal == 0 || signal == SIGCHLD) continue;
    passed_on = signal;
    ::kill(child, signal);
  }
}

}  // namespace stratagem
