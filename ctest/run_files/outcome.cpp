#include "run_files/outcome.hpp"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

Outcome sample() {
  return {.status = RunStatus::failed,
          .code = ExitCode::non_finite,
          .reason = "the loss is \"nan\"\n",
          .attempt = 3,
          .started_wall_ns = 1'700'000'000'000'000'001,
          .updated_wall_ns = 1'700'000'000'000'000'002,
          .host = "node-1",
          .process = 4711,
          .steps = 12,
          .began_after = 7,
          .in_vain = 2,
          .digest = "0123456789abcdef",
          .test_accuracy = 0.1,
          .train_time_s = 1.0 / 3,
          .trace_complete = false};
}

TEST(Outcome, ComesBackAsItWasWritten) {
  test::Scratch const run;
  EXPECT_FALSE(read_outcome(run.path()).has_value());
  auto const written = sample();
  write_outcome(run.path(), written);
  auto const read = read_outcome(run.path());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->status, written.status);
  EXPECT_EQ(read->code, written.code);
  EXPECT_EQ(read->reason, written.reason);
  EXPECT_EQ(read->attempt, written.attempt);
  EXPECT_EQ(read->started_wall_ns, written.started_wall_ns);
  EXPECT_EQ(read->updated_wall_ns, written.updated_wall_ns);
  EXPECT_EQ(read->host, written.host);
  EXPECT_EQ(read->process, written.process);
  EXPECT_EQ(read->steps, written.steps);
  EXPECT_EQ(read->began_after, written.began_after);
  EXPECT_EQ(read->in_vain, written.in_vain);
  EXPECT_EQ(read->digest, written.digest);
  EXPECT_EQ(read->test_accuracy, written.test_accuracy);
  EXPECT_EQ(read->train_time_s, written.train_time_s);
  EXPECT_EQ(read->trace_complete, written.trace_complete);
}

TEST(Outcome, WhatIsNotKnownComesBackAsNan) {
  test::Scratch const run;
  auto outcome = sample();
  outcome.test_accuracy = std::nan("");
  outcome.reason = "\xff is no UTF-8";
  write_outcome(run.path(), outcome);
  EXPECT_TRUE(std::isnan(read_outcome(run.path())->test_accuracy));
}

TEST(Outcome, DamageIsAnErrorOfItsOwn) {
  auto const good = to_json(sample());
  auto without = [&](std::string const& line) {
    auto text = good;
    auto const begin = text.find(line);
    return text.erase(begin, text.find('\n', begin) + 1 - begin);
  };
  for (auto const& text :
       {std::string(), std::string("{}"), std::string("[1]"), good.substr(0, good.size() / 2),
        without("\"digest\""), std::string("{\"status\": 3}")}) {
    test::Scratch const run;
    replace_file(run / "outcome.json", text);
    try {
      static_cast<void>(read_outcome(run.path()));
      ADD_FAILURE() << text;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::io) << text;
      EXPECT_NE(std::string(error.what()).find("is damaged"), std::string::npos) << error.what();
    }
  }
}

TEST(Outcome, IsRunningUntilItIsFinished) {
  test::Scratch const run;
  auto at_start = sample();
  at_start.status = RunStatus::running;
  std::atomic<std::int64_t> const steps = 3;
  {
    OutcomeKeeper keeper(run.path(), at_start, steps);
    EXPECT_EQ(read_outcome(run.path())->status, RunStatus::running);
    EXPECT_TRUE(std::filesystem::exists(run / ".outcome.reserve"));
    keeper.finish(sample());
    EXPECT_EQ(read_outcome(run.path())->status, RunStatus::failed);
    EXPECT_GT(read_outcome(run.path())->updated_wall_ns, sample().updated_wall_ns);
    EXPECT_FALSE(std::filesystem::exists(run / ".outcome.reserve"));
  }
  // Whoever does not finish leaves it as running.
  { OutcomeKeeper const keeper(run.path(), at_start, steps); }
  EXPECT_EQ(read_outcome(run.path())->status, RunStatus::running);
}

TEST(Outcome, IsForetoldWhereItMayBeTheLastWord) {
  test::Scratch const run;
  std::atomic<std::int64_t> const steps = 3;
  auto outcome = sample();
  outcome.status = RunStatus::running;
  OutcomeKeeper keeper(run.path(), outcome, steps);
  outcome.status = RunStatus::failed;
  outcome.code = code_of_signal(15);
  keeper.foretell(outcome);
  EXPECT_EQ(to_int(read_outcome(run.path())->code), 143);
  EXPECT_NE(to_json(outcome).find("ended by a signal"), std::string::npos);
  outcome.status = RunStatus::saved;
  keeper.finish(outcome);
  EXPECT_EQ(read_outcome(run.path())->status, RunStatus::saved);
}

}  // namespace
}  // namespace stratagem
