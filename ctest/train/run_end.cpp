#include "train/run_end.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "support/scratch.hpp"

namespace stratagem {
namespace {

Error const launcher_lost(ExitCode::peer_lost, "rank 0 has lost its launcher");

/// The ends of a run's ranks, after `step` steps of which rank 0 knows.
class Ranks {
 public:
  explicit Ranks(std::int64_t step) {
    leader.begin();
    leader.reached().step = step;
    other.reached().step = step;
  }

  Outcome outcome() const { return read_outcome(scratch_.path()).value(); }

 private:
  test::Scratch scratch_;
  Log log_{0, false, LogLevel::error};
  RunDirectory directory_{.path = scratch_.path()};

 public:
  RunEnd leader{directory_, true, log_};
  RunEnd other{directory_, false, log_};
};

void expect_saved(Outcome const& outcome) {
  EXPECT_EQ(outcome.status, RunStatus::saved);
  EXPECT_EQ(outcome.code, ExitCode::saved);
  EXPECT_EQ(outcome.reason, "interrupted");
  EXPECT_EQ(outcome.steps, 20);
}

void expect_failed(Outcome const& outcome) {
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_EQ(outcome.code, launcher_lost.code());
  EXPECT_EQ(outcome.reason, launcher_lost.what());
}

TEST(RunEnd, WhatStoppedAndIsSavedIsSavedWhateverEndsItsRanks) {
  for (bool const other_first : {false, true}) {
    Ranks ranks(20);
    ranks.leader.stop();
    EXPECT_EQ(ranks.outcome().status, RunStatus::running);
    ranks.leader.saved(20);
    expect_saved(ranks.outcome());
    (other_first ? ranks.other : ranks.leader).die(launcher_lost, trace::Status::failed);
    expect_saved(ranks.outcome());
    (other_first ? ranks.leader : ranks.other).die(launcher_lost, trace::Status::failed);
    expect_saved(ranks.outcome());
  }
}

TEST(RunEnd, AnyRankThatKnowsOfItSaysSo) {
  Ranks ranks(20);
  ranks.other.stop();
  ranks.other.saved(20);
  ranks.other.die(launcher_lost, trace::Status::failed);
  expect_saved(ranks.outcome());
}

TEST(RunEnd, AfterTermToo) {
  Ranks ranks(20);
  ranks.leader.foretell(SIGTERM);
  EXPECT_EQ(ranks.outcome().status, RunStatus::failed);
  ranks.leader.saved(20);
  ranks.other.fail(launcher_lost);
  ranks.other.die(launcher_lost, trace::Status::failed);
  ranks.leader.fail(launcher_lost);
  expect_saved(ranks.outcome());
}

TEST(RunEnd, WhatIsNotSavedHasFailed) {
  Ranks ranks(20);
  ranks.leader.stop();
  ranks.leader.saved(19);
  ranks.leader.die(launcher_lost, trace::Status::failed);
  expect_failed(ranks.outcome());
}

TEST(RunEnd, AndSoHasWhatWasToGoOn) {
  Ranks ranks(20);
  ranks.leader.saved(20);
  ranks.other.die(launcher_lost, trace::Status::failed);
  expect_failed(ranks.outcome());
}

}  // namespace
}  // namespace stratagem
