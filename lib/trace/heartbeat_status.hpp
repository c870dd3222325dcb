#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem::trace {

/// What a rank is doing: the phases of a step, the work of a server, and activities between steps.
enum class Activity {
  data,
  forward,
  backward,
  comm_exposed,
  optimizer,
  serve,    ///< a server handles gradients
  between,  ///< after a step
  init,
  evaluate,
  save,
  finish,
};

inline constexpr std::size_t activities = 11;
inline constexpr std::array<std::string_view, activities> activity_names{
    "data",    "forward", "backward", "comm_exposed", "optimizer", "serve",
    "between", "init",    "evaluate", "save",         "finish"};

/// Where a rank is, for observers in other processes of its node; it may lie in shared memory. Each
/// number is correct by itself, but several numbers need not belong to the same moment.
struct Sign {
  std::atomic<std::uint64_t> marks = 0;  ///< grows at every sign of life
  std::atomic<Activity> activity = Activity::init;
  std::atomic<std::int64_t> step = -1;
  std::atomic<std::int64_t> since_ns = 0;  ///< of the last mark
  std::atomic<bool> waits = false;         ///< for other ranks, or for the device
  // For operations between ranks.
  std::atomic<std::uint64_t> submitted = 0, finished = 0;
  std::atomic<std::uint64_t> beats = 0;   ///< of the thread driving them
  std::atomic<std::int64_t> busy_ns = 0;  ///< of a step, without waiting: least of the last few
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<Activity>::is_always_lock_free);

/// Keeps the Sign of this rank, and stores what only its own process needs to know. A mark costs
/// a few stores and a reading of the clock. Marks are made by the training thread.
class HeartbeatStatus {
 public:
  /// `sign` must outlive the heartbeat; without one, the heartbeat has its own.
  explicit HeartbeatStatus(Sign* sign = nullptr);

  Sign const& sign() const { return *sign_; }

  void enter(Activity activity, std::int64_t step);
  /// Another sign of life in the same activity.
  void mark();
  /// A step has ended; this is its time without waiting for others.
  void end_step(std::int64_t busy_ns);

  /// While it lives, the training thread waits. Without a heartbeat, it does nothing.
  class Wait {
   public:
    /// `what` must be a literal.
    Wait(HeartbeatStatus* heartbeat, char const* what);
    ~Wait();
    Wait(Wait const&) = delete;
    Wait& operator=(Wait const&) = delete;

   private:
    HeartbeatStatus* heartbeat_;
  };

  /// An operation between ranks has begun; returns its number. `name` must be a literal. Any
  /// thread.
  std::uint64_t submitted(std::string_view name, std::int64_t bytes, std::int64_t peer);
  void finished(std::uint64_t number);
  /// A sign of life of the thread that drives operations.
  void beat();

  /// Durations between two marks of an activity on this rank, without waiting.
  struct Stretches {
    std::int64_t count = 0;
    std::int64_t p99_ns = 0;  ///< up to a quarter too large
  };
  Stretches stretches(Activity activity) const;

  /// "step 12, comm_exposed: has waited 5.2 s for all_reduce".
  std::string where() const;
  /// The last operations, as a list of clauses.
  std::string last_operations() const;

 private:
  static constexpr std::size_t kept_operations = 16;
  static constexpr std::size_t compared_steps = 8;
  static constexpr std::size_t lengths = 160;  ///< number of classes, four per power of two

  struct Operation {
    std::uint64_t number = 0;  ///< 0: none
    std::string_view name;
    std::int64_t bytes = 0, peer = -1;
    std::int64_t begin_ns = 0, end_ns = 0;  ///< end 0: not finished
  };

  void end_stretch(bool counts);

  Sign own_;
  Sign* sign_;
  std::atomic<char const*> waits_for_ = "";
  std::array<std::array<std::atomic<std::uint32_t>, lengths>, activities> counts_{};
  std::array<std::int64_t, compared_steps> busy_{};
  std::size_t steps_ = 0;

  mutable std::mutex mutex_;
  std::array<Operation, kept_operations> last_{};  ///< under mutex_
};

}  // namespace stratagem::trace
