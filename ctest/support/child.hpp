#pragma once

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace stratagem::test {

/// A forked copy of this process that runs one function and ends with its result, for tests that
/// kill, limit or crash a process. Fork before the test starts threads.
class Child {
 public:
  static constexpr int threw = 99;

  template <class Body>
  explicit Child(Body body) : pid_(::fork()) {
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ == 0) ::_exit(run(body));
  }
  ~Child() {
    if (pid_ < 0) return;
    kill();
    wait();
  }
  Child(Child const&) = delete;
  Child& operator=(Child const&) = delete;

  void kill() const { ::kill(pid_, SIGKILL); }

  /// The exit code, or the negative number of the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  template <class Body>
  static int run(Body& body) {
    try {
      return body();
    } catch (std::exception const& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      return threw;
    }
  }

  pid_t pid_;
};

/// One process lets another pass; made before the fork.
class Gate {
 public:
  Gate() {
    if (::pipe(ends_) != 0) throw std::runtime_error("cannot make a pipe");
  }
  ~Gate() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Gate(Gate const&) = delete;
  Gate& operator=(Gate const&) = delete;

  void open() const {
    if (::write(ends_[1], "", 1) != 1) throw std::runtime_error("cannot write to a pipe");
  }
  void pass() const {
    char byte = 0;
    if (::read(ends_[0], &byte, 1) != 1) throw std::runtime_error("cannot read from a pipe");
  }

 private:
  int ends_[2]{};
};

}  // namespace stratagem::test
