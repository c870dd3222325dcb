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

/// Lets one of several threads run at a time. Whenever the running one waits, a seed decides which
/// is next: the same seed gives the same interleaving. There are thus no races between two waits.
/// Between turns, events may happen; the seed also decides when and how often.
class Turns {
 public:
  /// `happens` makes one event happen; false if there is none.
  Turns(
      int players, std::uint64_t seed, std::function<bool()> happens = [] { return false; });

  /// Called first by every player; returns when all have called it and the player's first turn
  /// begins.
  void enter(int player);
  /// Gives up the turn until `ready` holds and the player is chosen again; `what` says what it
  /// waits for. If all remaining players wait and no more events happen, all of them throw
  /// Error(stall), or the reason passed to fail().
  void wait_until(int player, std::string what, std::function<bool()> ready);
  /// Lets the others run.
  void pause(int player);
  /// The same for a player that polls: if it polls many times while no other player continues, it
  /// counts as waiting forever.
  void poll(int player);
  /// The player ends and never waits again.
  void leave(int player);
  /// The reason why others may wait forever from now on. Only the first reason counts.
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
  std::uint64_t drawn_ = 0;  ///< random numbers drawn so far
  std::function<bool()> happens_;
  int polls_ = 0;  ///< since another player continued, or an event happened
  std::mutex mutex_;
  int missing_;  ///< players that have not entered yet
  int running_ = nobody;
  std::vector<Player> players_;
  std::exception_ptr reason_;   ///< of fail()
  std::exception_ptr verdict_;  ///< once set, no player gets another turn
};

}  // namespace stratagem
