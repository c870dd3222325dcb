#include "run_files/run_directory.hpp"

#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "run_files/outcome.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t nobody = 1 << 30;  // no process has this id

enum class Before {
  nothing,
  empty,
  file,
  foreign,
  hardly_begun,
  complete,
  failed,
  died,
  lives,
  lives_elsewhere,
  lived_before_a_restart
};

void make(fs::path const& path, Before before) {
  if (before == Before::nothing) return;
  if (before == Before::file) return replace_file(path, "a file");
  fs::create_directories(path);
  if (before == Before::empty) return;
  if (before == Before::foreign) return replace_file(path / "thesis.tex", "years of work");
  fs::create_directories(path / "trace" / "a0");
  if (before == Before::hardly_begun) return replace_file(path / "config.yaml", "schema: 1");
  Outcome outcome{.updated_wall_ns = wall_ns(), .host = host_name(), .process = nobody};
  if (before == Before::complete) outcome.status = RunStatus::complete;
  if (before == Before::failed) outcome.status = RunStatus::failed;
  if (before == Before::lives) outcome.process = ::getpid();
  if (before == Before::lived_before_a_restart) {
    outcome.process = ::getpid();  // which is another one's now
    outcome.updated_wall_ns -= 3'600'000'000'000;
  }
  if (before == Before::lives_elsewhere) outcome.host = "another host";
  write_outcome(path, outcome);
}

enum class Then { refused, first, second, done_already, moved_aside };

struct Rule {
  Before before;
  Then refuse, resume, overwrite;
};

using enum Then;
constexpr Rule rules[]{
    {Before::nothing, first, first, first},
    {Before::empty, first, first, moved_aside},
    {Before::file, refused, refused, refused},
    {Before::foreign, refused, refused, moved_aside},
    {Before::hardly_begun, refused, second, moved_aside},
    {Before::complete, refused, done_already, moved_aside},
    {Before::failed, refused, second, moved_aside},
    {Before::died, refused, second, moved_aside},
    {Before::lives, refused, refused, refused},
    {Before::lives_elsewhere, refused, refused, refused},
    {Before::lived_before_a_restart, refused, second, moved_aside},
};

Then claim(Before before, Existing existing) {
  test::Scratch const scratch;
  auto const path = scratch / "run";
  make(path, before);
  std::optional<RunDirectory> claimed;
  try {
    claimed = claim_run_directory(path, existing);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find(path.string() + " is taken"), std::string::npos);
    return refused;
  }
  if (claimed->already_complete) return done_already;
  begin_attempt(*claimed);
  EXPECT_TRUE(fs::is_directory(claimed->trace_folder()));
  EXPECT_TRUE(fs::is_directory(path / "logs"));
  if (claimed->attempt > 0) return second;
  auto const folders = std::distance(fs::directory_iterator(scratch.path()), {});
  return folders > 1 ? moved_aside : first;
}

TEST(RunDirectory, RulesAboutWhatIsThereAlready) {
  for (auto const& rule : rules) {
    auto const number = static_cast<int>(rule.before);
    EXPECT_EQ(claim(rule.before, Existing::refuse), rule.refuse) << number;
    EXPECT_EQ(claim(rule.before, Existing::resume), rule.resume) << number;
    EXPECT_EQ(claim(rule.before, Existing::overwrite), rule.overwrite) << number;
  }
}

TEST(RunDirectory, AttemptsAreNumberedOnwards) {
  test::Scratch const scratch;
  make(scratch / "run", Before::failed);
  for (auto const* name : {"a9", "a10", "b77", "apple"})
    fs::create_directories(scratch / "run" / "trace" / name);
  auto const claimed = claim_run_directory(scratch / "run", Existing::resume);
  begin_attempt(claimed);
  EXPECT_EQ(claimed.attempt, 11);
  EXPECT_EQ(claimed.trace_file(7), scratch / "run" / "trace" / "a11" / "rank-0007.h5");
  EXPECT_EQ(claimed.trace_file(12345).filename(), "rank-12345.h5");
  EXPECT_EQ(claimed.log_file(0), scratch / "run" / "log.txt");
  EXPECT_EQ(claimed.log_file(3), scratch / "run" / "logs" / "rank-0003.log");
}

/// What each of two processes says that claim the directory at the same time.
TEST(RunDirectory, OneProcessAtATime) {
  for (auto const existing : {Existing::refuse, Existing::resume, Existing::overwrite}) {
    test::Scratch const scratch;
    auto const first = claim_run_directory(scratch / "run", existing);
    begin_attempt(first);
    try {
      claim_run_directory(scratch / "run", existing);
      ADD_FAILURE() << "two have it";
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      std::string const text = error.what();
      EXPECT_NE(text.find(str("process ", ::getpid())), std::string::npos) << text;
      EXPECT_NE(text.find("is taken"), std::string::npos) << text;
    }
  }
}

/// Where the file system has no locks, or knows them on one node alone.
TEST(RunDirectory, OneProcessPerAttempt) {
  test::Scratch const scratch;
  auto claimed = claim_run_directory(scratch / "run", Existing::resume);
  claimed.lock.reset();
  auto const other = claim_run_directory(scratch / "run", Existing::resume);
  begin_attempt(claimed);
  try {
    begin_attempt(other);
    FAIL() << "two have it";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(RunDirectory, TheLockEndsWithTheRun) {
  test::Scratch const scratch;
  auto claimed = claim_run_directory(scratch / "run", Existing::refuse);
  begin_attempt(claimed);
  EXPECT_TRUE(fs::exists(scratch / "run" / ".lock"));
  claimed = {};
  EXPECT_FALSE(fs::exists(scratch / "run" / ".lock"));
}

/// Ranks may have started elsewhere.
TEST(RunDirectory, ItsPathIsAbsolute) {
  test::Scratch const scratch;
  auto const here = fs::current_path();
  fs::current_path(scratch.path());
  auto const claimed = claim_run_directory("run", Existing::refuse);
  fs::current_path(here);
  EXPECT_EQ(claimed.path, scratch / "run");
}

TEST(RunDirectory, WhatCannotBeWrittenIsAnErrorOfInputAndOutput) {
  test::Scratch const scratch;
  replace_file(scratch / "file", "");
  try {
    claim_run_directory(scratch / "file" / "run", Existing::refuse);
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
  }
}

}  // namespace
}  // namespace stratagem
