#pragma once

#include <chrono>
#include <csignal>

#include <sys/types.h>

namespace stratagem {

/// While it lives, USR1, TERM and INT do not end this process. They wait until they are taken and
/// passed on to a child. Ctrl-C reaches a child directly; a second INT would look like another
/// Ctrl-C. For programs that start other programs under a scheduler. The calling thread must be the
/// only one that could receive these signals.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(HeldSignals const&) = delete;
  HeldSignals& operator=(HeldSignals const&) = delete;

  /// The signals that a child should block: those blocked before, without these three.
  sigset_t for_child() const;

  /// USR1, TERM or INT that came and was not taken yet, or 0.
  int take();

  /// Waits for `child` to end, and passes signals on to it meanwhile. Returns its status, as
  /// waitpid does. `passed_on` is set to the last such signal.
  int wait_for(pid_t child, int& passed_on);

 private:
  struct Signal {
    int number = 0;
    bool of_terminal = false;  ///< the terminal sent it to its whole foreground process group
  };

  Signal next(std::chrono::milliseconds patience);

  sigset_t held_{}, before_{};
};

}  // namespace stratagem
