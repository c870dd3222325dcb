#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace stratagem::mpi {

/// Ends the process if one of its MPI calls waits for other ranks longer than allowed, with code
/// stall and a message that says where: an MPI call cannot be cancelled from within. The time is
/// measured by a thread that makes no MPI calls; it does not count while the process is stopped.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit);
  ~Patience();
  Patience(Patience const&) = delete;
  Patience& operator=(Patience const&) = delete;

  /// Limit of each wait from now on.
  void set_limit(std::chrono::milliseconds limit) { limit_ms_ = limit.count(); }
  /// This rank. Rank 0 reports first: if all ranks wait, its message is enough.
  void set_rank(int rank) { rank_ = rank; }
  /// What the ranks do together from now on, as text for people.
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
  std::atomic<std::uint64_t> number_ = 0;  ///< counts waits
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string phase_ = "the start";  ///< under mutex_
  bool stopping_ = false;            ///< under mutex_
  std::thread thread_;
};

}  // namespace stratagem::mpi
