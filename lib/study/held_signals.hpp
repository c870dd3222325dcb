#pragma once

#include <chrono>
#include <csignal>

#include <sys/types.h>

namespace stratagem {

/// While it lives, USR1, TERM and INT do not end this process: they wait until they are taken, to
/// be passed on to a child. Ctrl-C reaches a child by itself: a second INT would be another Ctrl-C.
/// For programs that start others under a scheduler. The calling thread must be the only one that
/// could receive them.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(HeldSignals const&) = delete;
  HeldSignals& operator=(HeldSignals const&) = delete;

  /// What a child should hold back: as before, but none of these, whoever holds them here.
  sigset_t for_child() const;

  /// USR1, TERM or INT that came and was not taken yet, or 0.
  int take();

  /// Waits for `child` to end and passes on to it what comes meanwhile; its status as of waitpid.
  /// `passed_on` is set to the last signal there was.
  int wait_for(pid_t child, int& passed_on);

 private:
  struct Signal {
    int number = 0;
    bool of_terminal = false;  ///< whose whole foreground group has it
  };

  Signal next(std::chrono::milliseconds patience);

  sigset_t held_{}, before_{};
};

}  // namespace stratagem
