#include "train/signal_watch.hpp"

#include <array>
#include <cerrno>
#include <chrono>
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

constexpr auto time_for_saving = std::chrono::milliseconds(700);

void require(bool holds, char const* what) {
  if (!holds) throw Error(ExitCode::environment, what, std::strerror(errno));
}

}  // namespace

SignalWatch::Scope::Scope(SignalWatch& watch, Reactions reactions)
    : watch_(watch), before_(watch.replace(std::move(reactions))) {}

SignalWatch::Scope::~Scope() {
  watch_.replace(std::move(before_));
}

SignalWatch::SignalWatch() {
  sigemptyset(&heard_);
  for (int const signal : {SIGUSR1, SIGINT, SIGTERM, SIGCONT}) sigaddset(&heard_, signal);
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
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if ((watched[1].revents & POLLIN) != 0) return;
    signalfd_siginfo heard{};
    if (::read(signals_, &heard, sizeof heard) == sizeof heard)
      hear(static_cast<int>(heard.ssi_signo));
  }
}

void SignalWatch::hear(int signal) {
  std::unique_lock lock(mutex_);
  if (signal == SIGCONT) {
    if (reactions_.flush) reactions_.flush();
    return;
  }
  if (reactions_.saves && (signal == SIGUSR1 || (signal == SIGINT && !interrupted()))) {
    interrupted_ = true;
    if (reactions_.interrupt) reactions_.interrupt();
    return;
  }
  if (signal == SIGTERM && reactions_.time_to_save && reactions_.time_to_save()) {
    interrupted_ = true;
    lock.unlock();
    pollfd over{wake_, POLLIN, 0};
    if (::poll(&over, 1, static_cast<int>(time_for_saving.count())) > 0) return;  // it was in time
    lock.lock();
  }
  if (reactions_.end) reactions_.end(signal);
  end(signal);
}

void SignalWatch::end(int signal) {
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
