#include "study/cell_status.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t second = 1'000'000'000;

/// The folder of a study with one cell, p-a.
struct OneCell {
  OneCell() : study(StudyDirectory::prepare(folder / "study", sample())) {
    std::filesystem::create_directories(study.run_directory("p-a"));
  }

  static Study sample() {
    Study study{.name = "s", .file = "s.yaml", .text = "name: s\n", .overrides = {}, .cells = {}};
    Cell cell;
    cell.entry.name = "p-a";
    study.cells.push_back(cell);
    return study;
  }

  CellStatus status() const { return status_of(study, "p-a"); }
  CellStatus after(Outcome const& end) const {
    write_outcome(study.run_directory("p-a"), end);
    return status();
  }

  test::Scratch const folder;
  StudyDirectory const study;
};

Outcome outcome(RunStatus status, ExitCode code = ExitCode::done) {
  return {.status = status,
          .code = code,
          .reason = "because",
          .started_wall_ns = wall_ns() - 300 * second,
          .updated_wall_ns = wall_ns() - second,
          .host = "elsewhere",
          .process = 1};
}

TEST(CellStatus, NotStarted) {
  OneCell const one;
  auto const status = one.status();
  EXPECT_EQ(status.state, CellState::missing);
  EXPECT_EQ(status.reason, "not started");
}

TEST(CellStatus, ALauncherThatFailedBeforeTheRunTellsWhy) {
  OneCell const one;
  write_launch_record(one.study.launch_file("p-a"),
                      {.exit_code = 3, .last_line = "2 ranks, but the configuration says 4"});
  auto const status = one.status();
  EXPECT_EQ(status.state, CellState::failed);
  EXPECT_EQ(status.code, ExitCode::environment);
  EXPECT_EQ(status.reason, "2 ranks, but the configuration says 4");
}

TEST(CellStatus, EndsAreTheRunsOwn) {
  OneCell const one;
  EXPECT_EQ(one.after(outcome(RunStatus::complete)).state, CellState::complete);
  EXPECT_EQ(one.after(outcome(RunStatus::failed, ExitCode::non_finite)).state, CellState::failed);
  EXPECT_EQ(one.after(outcome(RunStatus::failed, ExitCode::saved)).state, CellState::saved);
  EXPECT_EQ(one.status().reason, "because");
}

TEST(CellStatus, ARunWithoutSignOfLifeIsLost) {
  OneCell const one;
  auto run = outcome(RunStatus::running);
  EXPECT_EQ(one.after(run).state, CellState::running);
  run.updated_wall_ns = wall_ns() - 120 * second;
  EXPECT_EQ(one.after(run).state, CellState::lost);
  EXPECT_EQ(one.after(run).code, ExitCode::peer_lost);
  run = outcome(RunStatus::running);
  run.host = host_name();
  run.process = ::getpid();
  EXPECT_EQ(one.after(run).state, CellState::running);
  run.process = 0x7fffffff;
  EXPECT_EQ(one.after(run).state, CellState::lost) << "here it is known at once";
}

TEST(CellStatus, OnceTheLauncherHasEndedTheRunHasItsWordOrIsLost) {
  using enum CellState;
  struct Case {
    CellState state;
    ExitCode code;
    int launcher;
    CellState then;
    ExitCode then_code;
  };
  auto const done = ExitCode::done, lost_peer = ExitCode::peer_lost;
  for (auto const& [state, code, launcher, then, then_code] : {
           Case{complete, done, 0, complete, done},
           Case{complete, done, 137, complete, done},
           Case{saved, ExitCode::saved, 137, saved, ExitCode::saved},
           Case{failed, ExitCode::stall, 137, failed, ExitCode::stall},
           Case{failed, ExitCode::unexpected, 1, failed, ExitCode::unexpected},
           Case{failed, ExitCode::unexpected, 137, failed, lost_peer},
           Case{failed, ExitCode::unexpected, 0, failed, lost_peer},
           Case{running, done, 0, lost, lost_peer},
           Case{running, done, 137, lost, lost_peer},
           Case{missing, done, 0, failed, lost_peer},
           Case{missing, done, 3, failed, ExitCode::environment},
       }) {
    auto const after = once_ended({.state = state, .code = code}, launcher);
    EXPECT_EQ(after.state, then) << name_of(state) << ", launcher " << launcher;
    EXPECT_EQ(after.code, then_code) << name_of(state) << ", launcher " << launcher;
  }
}

TEST(CellStatus, ARunTellsTheSameByItselfAsInItsStudy) {
  OneCell const one;
  one.after(outcome(RunStatus::failed, ExitCode::saved));
  auto const run = one.study.run_directory("p-a");
  EXPECT_EQ(status_of_run(run).state, CellState::saved);
  write_launch_record(
      one.study.launch_file("p-a"),
      {.exit_code = 3, .started_wall_ns = wall_ns(), .last_line = "no such data set"});
  for (auto const& status : {one.status(), status_of_run(run), status_of_run(run / "")}) {
    EXPECT_EQ(status.state, CellState::failed) << "the start after it was saved";
    EXPECT_EQ(status.reason, "no such data set");
  }
}

TEST(CellStatus, AStartThatFailedLaterTellsMore) {
  OneCell const one;
  write_launch_record(one.study.launch_file("p-a"),
                      {.exit_code = 3, .started_wall_ns = wall_ns(), .last_line = "no data"});
  EXPECT_EQ(one.after(outcome(RunStatus::failed, ExitCode::non_finite)).reason, "no data");
  EXPECT_EQ(one.after(outcome(RunStatus::complete)).state, CellState::complete);
}

TEST(CellStatus, ADamagedOutcomeIsAFailure) {
  OneCell const one;
  std::ofstream(one.study.run_directory("p-a") / "outcome.json") << "{";
  EXPECT_EQ(one.status().state, CellState::failed);
}

TEST(CellStatus, TheTableLeavesCompleteCellsOut) {
  OneCell const one;
  std::vector<CellStatus> const cells{one.after(outcome(RunStatus::complete))};
  EXPECT_EQ(count_states(cells), "1 cell: 1 complete");
  EXPECT_TRUE(status_table(one.study, cells, false).empty());
  EXPECT_FALSE(status_table(one.study, cells, true).empty());
}

}  // namespace
}  // namespace stratagem
