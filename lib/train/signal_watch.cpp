#include "train/signal_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/system.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

void require(bool holds, char const* what) {
  if (!holds) throw Error(ExitCode::environment, what, std::strerror(errno));
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// UCX, which Open MPI may load, takes HUP for itself (UCX_DEBUG_SIGNO) as soon as it is loaded,
// which is before main(). The loader calls what stands in this section before any library's code.
bool hup_ignored_at_start = false;

void look_at_hup(int, char**, char**) {
  hup_ignored_at_start = is_ignored(SIGHUP);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*before_libraries)(int, char**,
                                                                       char**) = look_at_hup;

}  // namespace

SignalWatch::Scope::Scope(SignalWatch& watch, Reactions reactions)
    : watch_(watch), before_(watch.replace(std::move(reactions))) {}

SignalWatch::Scope::~Scope() {
  watch_.replace(std::move(before_));
}

SignalWatch::SignalWatch(Milliseconds grace, Reactions reactions)
    : grace_(grace), reactions_(std::move(reactions)) {
  sigemptyset(&heard_);
  for (int const signal : {SIGUSR1, SIGINT, SIGTERM, SIGCONT}) sigaddset(&heard_, signal);
  if (hup_ignored_at_start)
    std::signal(SIGHUP, SIG_IGN);
  else
    sigaddset(&heard_, SIGHUP);
  signals_ = ::signalfd(-1, &heard_, SFD_CLOEXEC);
  require(signals_ >= 0, "cannot watch signals");
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  require(wake_ >= 0, "cannot watch signals");
  pthread_sigmask(SIG_BLOCK, &heard_, &mask_before_);
  thread_ = std::thread([this] { run(); });
}

SignalWatch::~SignalWatch() {
  std::uint64_t const one = 1;
  static_cast<void>(::write(wake_, &one, sizeof one));
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  ::close(signals_);
  ::close(wake_);
}

SignalWatch::Reactions SignalWatch::replace(Reactions reactions) {
  std::lock_guard const lock(mutex_);
  return std::exchange(reactions_, std::move(reactions));
}

void SignalWatch::run() {
  name_thread("signals");
  std::array<pollfd, 2> watched{{{signals_, POLLIN, 0}, {wake_, POLLIN, 0}}};
  while (true) {
    int const ready = ::poll(watched.data(), watched.size(), milliseconds_left());
    if (ready < 0) continue;
    if ((watched[1].revents & POLLIN) != 0) return;
    if (deadline_ && Clock::now() >= deadline_->at) {
      std::lock_guard const lock(mutex_);
      end(deadline_->signal);
    }
    signalfd_siginfo heard{};
    if (ready > 0 && ::read(signals_, &heard, sizeof heard) == sizeof heard)
      hear(static_cast<int>(heard.ssi_signo), static_cast<pid_t>(heard.ssi_pid));
  }
}

int SignalWatch::milliseconds_left() const {
  if (!deadline_) return -1;
  auto const left = std::chrono::ceil<Milliseconds>(deadline_->at - Clock::now());
  return static_cast<int>(std::max(left, 0ms).count());
}

void SignalWatch::hear(int signal, pid_t sender) {
  std::lock_guard const lock(mutex_);
  if (signal == SIGCONT) return hear_continue(sender);
  if (signal == SIGTERM) return hear_terminate(sender);
  bool const again = interrupted();
  if (!reactions_.saves || (signal == SIGINT && again)) end(signal);
  interrupted_ = true;
  if (!again && reactions_.interrupt) reactions_.interrupt();
}

void SignalWatch::hear_continue(pid_t sender) {
  if (sender == ::getppid()) {
    continued_ = Clock::now();
    if (reactions_.saves && reactions_.end_is_near) reactions_.end_is_near();
  }
  if (reactions_.flush) reactions_.flush();
}

void SignalWatch::hear_terminate(pid_t sender) {
  if (deadline_) return;  // schedulers signal the launcher and its ranks, which hear of it twice
  if (!reactions_.saves || !reactions_.tries_to_save || !reactions_.tries_to_save(SIGTERM))
    end(SIGTERM);
  interrupted_ = true;
  deadline_ = {SIGTERM, Clock::now() + grace_after(sender)};
}

/// mpirun sends CONT, waits, sends TERM, waits as long again, and sends KILL: 1 s each (Open MPI 4)
/// or 0.25 s (Open MPI 5). Part of the second wait is left for the last words.
SignalWatch::Milliseconds SignalWatch::grace_after(pid_t sender) const {
  if (sender != ::getppid() || !continued_) return grace_;
  auto const waited = std::chrono::duration_cast<Milliseconds>(Clock::now() - *continued_);
  if (waited < 100ms || waited > 10min) return grace_;
  return waited * 7 / 10;
}

void SignalWatch::end(int signal) {
  if (reactions_.end) reactions_.end(signal);
  // The default action of the signal, which this thread is now the only one to receive.
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace stratagem
