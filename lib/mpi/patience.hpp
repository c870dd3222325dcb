#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace stratagem::mpi {

/// Ends the process, with code stall and a line that says where, when one of its calls waits for
/// other ranks longer than it may: no call of MPI can be given up from within. A thread that makes
/// no call of MPI counts the time; while the process is stopped it does not pass.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit);
  ~Patience();
  Patience(Patience const&) = delete;
  Patience& operator=(Patience const&) = delete;

  /// Of each wait from now on.
  void set_limit(std::chrono::milliseconds limit) { limit_ms_ = limit.count(); }
  /// Who waits. Rank 0 speaks first: what it says is enough where all wait.
  void set_rank(int rank) { rank_ = rank; }
  /// What the ranks do together from now on, for people.
  void enter(std::string phase);

  /// Lasts as long as one call that waits for other ranks. One at a time.
  class Wait {
   public:
    Wait(Patience& patience, char const* call) : patience_(patience) {
      ++patience_.number_;
      patience_.call_ = call;
    }
    ~Wait() { patience_.call_ = nullptr; }
    Wait(Wait const&) = delete;
    Wait& operator=(Wait const&) = delete;

   private:
    Patience& patience_;
  };

 private:
  void run();
  [[noreturn]] void give_up(char const* call, std::chrono::milliseconds waited);

  std::atomic<std::int64_t> limit_ms_;
  std::atomic<int> rank_ = -1;
  std::atomic<char const*> call_ = nullptr;
  std::atomic<std::uint64_t> number_ = 0;  ///< of the wait
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string phase_ = "the start";  ///< under mutex_
  bool stopping_ = false;            ///< under mutex_
  std::thread thread_;
};

}  // namespace stratagem::mpi
