#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace stratagem {

/// Lets one of several threads run at a time and decides, from a seed, who is next whenever the
/// running one waits: the same seed gives the same interleaving. Everything that players do between
/// two waits is therefore free of races.
class Turns {
 public:
  Turns(int players, std::uint64_t seed);

  /// Called first by every player; returns when all have and its first turn begins.
  void enter(int player);
  /// Gives the turn away until `ready` holds and the player is chosen again; `what` says what for.
  /// When every player that is left waits in vain, all of them throw: Error(stall), or what fail()
  /// was told.
  void wait_until(int player, std::string what, std::function<bool()> ready);
  /// Gives the others a chance to go on.
  void pause(int player);
  /// The player ends and never waits again.
  void leave(int player);
  /// Why the others may wait in vain from now on; a second reason changes nothing.
  void fail(std::exception_ptr reason);

 private:
  struct Player {
    bool left = false;
    std::string what;
    std::function<bool()> ready;
  };

  void await_turn(std::unique_lock<std::mutex>& lock, int player);
  void choose_next();
  std::string who_waits() const;

  static constexpr int nobody = -1;

  CounterRandom random_;
  std::uint64_t chosen_ = 0;  ///< times someone was chosen
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;  ///< players yet to enter
  int running_ = nobody;
  std::vector<Player> players_;
  std::exception_ptr reason_;   ///< of fail()
  std::exception_ptr verdict_;  ///< once set, nobody gets a turn any more
};

}  // namespace stratagem
