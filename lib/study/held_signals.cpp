#include "study/held_signals.hpp"

#include <cerrno>
#include <ctime>

#include <sys/wait.h>

namespace stratagem {
namespace {

constexpr int all_held[]{SIGUSR1, SIGTERM, SIGINT, SIGCHLD};

}  // namespace

HeldSignals::HeldSignals() {
  ::sigemptyset(&held_);
  for (int const signal : all_held) ::sigaddset(&held_, signal);
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() {
  while (next(std::chrono::milliseconds(0)).number == SIGCHLD) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

sigset_t HeldSignals::for_child() const {
  auto mask = before_;
  for (int const signal : all_held) ::sigdelset(&mask, signal);
  return mask;
}

/// Waits for one of them, or SIGCHLD; 0 if none came in time.
HeldSignals::Signal HeldSignals::next(std::chrono::milliseconds patience) {
  timespec const wait{.tv_sec = patience.count() / 1000,
                      .tv_nsec = patience.count() % 1000 * 1'000'000};
  siginfo_t about{};
  if (::sigtimedwait(&held_, &about, &wait) <= 0) return {};
  return {.number = about.si_signo, .of_terminal = about.si_code == SI_KERNEL};
}

int HeldSignals::take() {
  for (;;) {
    int const signal = next(std::chrono::milliseconds(0)).number;
    if (signal != SIGCHLD) return signal;
  }
}

int HeldSignals::wait_for(pid_t child, int& passed_on) {
  for (;;) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    // With a time limit, because one SIGCHLD may stand for several children.
    auto const signal = next(std::chrono::milliseconds(500));
    if (signal.number == 0 || signal.number == SIGCHLD) continue;
    passed_on = signal.number;
    if (!signal.of_terminal) ::kill(child, signal.number);
  }
}

}  // namespace stratagem
