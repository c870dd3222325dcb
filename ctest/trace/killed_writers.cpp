#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <list>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "support/child.hpp"
#include "support/scratch.hpp"
#include "trace/sample.hpp"
#include "trace/validate.hpp"

// Ranks that are killed at random moments while their traces are written. STRATAGEM_KILLED_WRITERS
// says how many of each kind.

namespace stratagem::trace {
namespace {

using namespace std::chrono_literals;

constexpr int at_once = 8;      ///< so many live at the same time
constexpr double most_s = 1.5;  ///< that may be lost: a second, and what a busy machine adds

/// How a trace is written: as in any run, or so that its writer does nothing but write and flush.
enum class Pace { by_the_second, in_a_hurry };

int killed_writers() {
  char const* const text = std::getenv("STRATAGEM_KILLED_WRITERS");
  return text == nullptr ? at_once : std::atoi(text);
}

int train_for_ever(std::filesystem::path const& path, test::Gate const& begun, Pace pace) {
  h5::initialise_library();
  Recorder recorder(gpu::Device{}, 1);
  TraceFile file(path, sample_header(0, 1), recorder, {}, 0);
  begun.open();
  for (std::int64_t step = 0;; ++step) {
    recorder.record(sample_step(step));
    recorder.record(SpanRecord{.name = recorder.intern(str("bucket ", step % 1000)),
                               .lane = Lane::comm,
                               .t_begin = monotonic_ns(),
                               .t_end = monotonic_ns(),
                               .step = step});
    if (pace == Pace::in_a_hurry) file.write_soon();
    std::this_thread::sleep_for(200us);
  }
}

class Victim {
 public:
  Victim(std::filesystem::path path, Pace pace)
      : path_(std::move(path)),
        rank_([this, pace] { return train_for_ever(path_, begun_, pace); }) {
    begun_.pass();
  }

  void kill() {
    killed_at_ = monotonic_ns();
    rank_.kill();
    EXPECT_EQ(rank_.wait(), -SIGKILL);
  }

  /// What is not in the trace [s], which can be read and has nothing wrong.
  double lost_s() const {
    auto const trace = read_rank_trace(path_);
    EXPECT_EQ(trace.status, Status::running);
    EXPECT_EQ(problems_of(trace), std::vector<std::string>{});
    auto const& begins = trace.table(steps_table()).integers("t_begin_ns");
    auto const last = begins.empty() ? created_at_ : begins.back();
    return static_cast<double>(killed_at_ - last) * 1e-9;
  }

 private:
  std::filesystem::path path_;
  std::int64_t created_at_ = monotonic_ns();
  std::int64_t killed_at_ = 0;
  test::Gate begun_;
  test::Child rank_;  ///< after what it uses
};

void kill_at_random(Pace pace, std::chrono::microseconds latest) {
  h5::initialise_library();
  double most_lost_s = 0;
  int killed = 0;
  for (CounterRandom const random(1, "moments of death"); killed < killed_writers();) {
    test::Scratch const scratch;
    std::list<Victim> victims;
    for (int i = 0; i < at_once; ++i) victims.emplace_back(scratch / str(i, ".h5"), pace);
    for (auto& victim : victims) {
      auto const word = random.word64(static_cast<std::uint64_t>(killed++));
      std::this_thread::sleep_for(latest * static_cast<double>(word >> 11) * 0x1p-53 / at_once);
      victim.kill();
    }
    for (auto const& victim : victims) most_lost_s = std::max(most_lost_s, victim.lost_s());
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  std::cout << killed << " killed, lost " << format_duration(most_lost_s) << " at most\n";
  EXPECT_LT(most_lost_s, most_s);
}

TEST(KilledWriters, AtAnyTimeLoseASecond) {
  kill_at_random(Pace::by_the_second, 5s);
}

TEST(KilledWriters, WithinAWriteOrAFlushLoseNoMore) {
  kill_at_random(Pace::in_a_hurry, 1s);
}

}  // namespace
}  // namespace stratagem::trace
