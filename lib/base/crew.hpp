#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stratagem {

/// Threads that share out independent pieces of work; the calling thread is one of them.
class Crew {
 public:
  /// What is done for piece `index`, by `member` of [0, size()).
  using Work = std::function<void(std::int64_t index, int member)>;

  /// `size` threads with the calling one, at least 1. `name` is for `top -H`.
  Crew(int size, std::string const& name);
  ~Crew();
  Crew(Crew const&) = delete;
  Crew& operator=(Crew const&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Does all pieces of [0, count), in any order. If some throw, no more are begun, and the error
  /// of the first of these pieces is rethrown. One call at a time.
  void for_each(std::int64_t count, Work const& work);

 private:
  void help(int member, std::stop_token const& stop);
  void take_pieces(int member);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  Work const* work_ = nullptr;  ///< under mutex_
  std::int64_t count_ = 0;      ///< under mutex_
  std::uint64_t call_ = 0;      ///< calls of for_each() so far; under mutex_
  int busy_ = 0;                ///< helpers that have not finished this call; under mutex_
  std::atomic<std::int64_t> next_{0};
  std::int64_t failed_ = 0;     ///< the first piece that failed; under mutex_
  std::exception_ptr failure_;  ///< under mutex_
  std::vector<std::jthread> helpers_;
};

}  // namespace stratagem
