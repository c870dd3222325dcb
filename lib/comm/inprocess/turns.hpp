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
/// two waits is therefore free of races. Between turns things may happen by themselves, when and
/// how often the seed decides too.
class Turns {
 public:
  /// `happens` makes one thing happen; false when there is nothing that could.
  Turns(
      int players, std::uint64_t seed, std::function<bool()> happens = [] { return false; });

  /// Called first by every player; returns when all have and its first turn begins.
  void enter(int player);
  /// Gives the turn away until `ready` holds and the player is chosen again; `what` says what for.
  /// When every player that is left waits in vain, and nothing happens any more, all of them throw:
  /// Error(stall), or what fail() was told.
  void wait_until(int player, std::string what, std::function<bool()> ready);
  /// Gives the others a chance to go on.
  void pause(int player);
  /// The same for a player that asks again and again whether something has come: one that does so
  /// for long, while nobody else goes on, waits in vain.
  void poll(int player);
  /// The player ends and never waits again.
  void leave(int player);
  /// Why the others may wait in vain from now on; a second reason changes nothing.
  void fail(std::exception_ptr reason);

 private:
  struct Player {
    bool left = false;
    std::string what;
    std::function<bool()> ready;
    std::condition_variable turn;
  };

  void give_away(std::unique_lock<std::mutex>& lock, int player, std::string what,
                 std::function<bool()> ready);
  void await_turn(std::unique_lock<std::mutex>& lock, int player);
  void choose_next();
  void give_up();
  std::string who_waits() const;

  static constexpr int nobody = -1;
  static constexpr int most_polls = 1000;  ///< in a row

  CounterRandom random_;
  std::uint64_t drawn_ = 0;  ///< random numbers so far
  std::function<bool()> happens_;
  int polls_ = 0;  ///< since anybody else went on, or anything happened
  std::mutex mutex_;
  int missing_;  ///< players yet to enter
  int running_ = nobody;
  std::vector<Player> players_;
  std::exception_ptr reason_;   ///< of fail()
  std::exception_ptr verdict_;  ///< once set, nobody gets a turn any more
};

}  // namespace stratagem
