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

/// What a rank is busy with: the phases of a step, what a server does, and what lies around steps.
enum class Activity {
  data,
  forward,
  backward,
  comm_exposed,
  optimizer,
  serve,    ///< a server treats gradients
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

/// Where a rank is, for those that watch it from other processes of its node: it may lie in memory
/// that they share. Each number is right by itself, several of them need not belong together.
struct Sign {
  std::atomic<std::uint64_t> marks = 0;  ///< another one at every sign of life
  std::atomic<Activity> activity = Activity::init;
  std::atomic<std::int64_t> step = -1;
  std::atomic<std::int64_t> since_ns = 0;  ///< of the last mark
  std::atomic<bool> waits = false;         ///< for other ranks, or for the device
  // Of operations between ranks.
  std::atomic<std::uint64_t> submitted = 0, finished = 0;
  std::atomic<std::uint64_t> beats =
      0;  ///< of the thread that makes them, while some are under way
  std::atomic<std::int64_t> busy_ns = 0;  ///< of a step, without waiting: the least of the last few
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<Activity>::is_always_lock_free);

/// Keeps the Sign of this rank, and remembers what its process alone has to know. Costs a step a
/// few stores and a look at the clock per mark. Marks are made by the training thread.
class Beacon {
 public:
  /// `sign` outlives it; without one it has its own.
  explicit Beacon(Sign* sign = nullptr);

  Sign const& sign() const { return *sign_; }

  void enter(Activity activity, std::int64_t step);
  /// Still in the same, and it goes on.
  void mark();
  /// A step has ended, of which this rank did not wait for others so long.
  void end_step(std::int64_t busy_ns);

  /// While it lives, the training thread waits. Without a beacon it does nothing.
  class Wait {
   public:
    /// `what` is a literal.
    Wait(Beacon* beacon, char const* what);
    ~Wait();
    Wait(Wait const&) = delete;
    Wait& operator=(Wait const&) = delete;

   private:
    Beacon* beacon_;
  };

  /// An operation between ranks is under way; its number. `name` is a literal. Any thread.
  std::uint64_t submitted(std::string_view name, std::int64_t bytes, std::int64_t peer);
  void finished(std::uint64_t number);
  /// The thread that drives operations lives.
  void beat();

  /// How long stretches between two marks of an activity last, of this rank, waiting left out.
  struct Stretches {
    std::int64_t count = 0;
    std::int64_t p99_ns = 0;  ///< up to a quarter too long
  };
  Stretches stretches(Activity activity) const;

  /// "step 12, comm_exposed: has waited 5.2 s for all_reduce".
  std::string where() const;
  /// The last operations, a clause each.
  std::string last_operations() const;

 private:
  static constexpr std::size_t kept_operations = 16;
  static constexpr std::size_t compared_steps = 8;
  static constexpr std::size_t lengths = 160;  ///< classes of them, four to a power of two

  struct Operation {
    std::uint64_t number = 0;  ///< 0: none
    std::string_view name;
    std::int64_t bytes = 0, peer = -1;
    std::int64_t begin_ns = 0, end_ns = 0;  ///< end 0: under way
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
