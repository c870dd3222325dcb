#include "trace/recorder.hpp"

#include <chrono>
#include <cstdio>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "h5/error.hpp"
#include "support/scratch.hpp"
#include "trace/rank_trace.hpp"
#include "trace/sample.hpp"

namespace stratagem::trace {
namespace {

using namespace std::chrono_literals;

std::int64_t of(StepRecord const& step, Phase phase) {
  return step.durations[static_cast<std::size_t>(phase)];
}

/// What a reader finds after `record` used a recorder of `spans_every`.
template <class Record>
RankTrace recorded(int spans_every, Record record) {
  h5::initialise_library();
  test::Scratch const scratch;
  Recorder recorder(gpu::Device{}, spans_every);
  TraceFile file(scratch / "x.h5", sample_header(0, 1), recorder, {}, 0);
  record(recorder);
  if (auto const failure = file.close(Status::complete, {})) throw *failure;
  return read_rank_trace(scratch / "x.h5");
}

TEST(Recorder, PhasesCutTheStepWithoutGaps) {
  Recorder recorder(gpu::Device{}, 0);
  recorder.begin_step(3, 1);
  recorder.enter(Phase::data);
  for (int i = 0; i < 3; ++i) {
    recorder.enter(Phase::forward);
    recorder.enter(Phase::forward);
    std::this_thread::sleep_for(2ms);
    recorder.enter(Phase::comm_exposed);
  }
  recorder.enter(Phase::optimizer);
  recorder.end_step();
  auto const& step = recorder.last_step();
  EXPECT_EQ(step.step, 3);
  EXPECT_EQ(step.epoch, 1);
  EXPECT_EQ(std::accumulate(step.durations.begin(), step.durations.end(), std::int64_t{0}),
            step.duration);
  EXPECT_GE(of(step, Phase::forward), 6'000'000);
  EXPECT_EQ(of(step, Phase::backward), 0);
  EXPECT_GT(of(step, Phase::comm_exposed), 0);
}

TEST(Recorder, SaysWhereTheTrainingIs) {
  Recorder recorder(gpu::Device{}, 0);
  EXPECT_EQ(recorder.where(), "before the first step");
  recorder.begin_step(3, 1);
  recorder.enter(Phase::forward);
  EXPECT_EQ(recorder.where(), "at step 3, forward");
  recorder.end_step();
  EXPECT_EQ(recorder.where(), "after step 3");
}

TEST(Recorder, WhatIsEnteredBetweenStepsBelongsToNone) {
  Recorder recorder(gpu::Device{}, 0);
  recorder.begin_step(3, 1);
  recorder.enter(Phase::forward);
  recorder.end_step({.loss = 2, .samples = 64, .lr = 0.5});
  recorder.enter(Phase::comm_exposed);
  EXPECT_EQ(recorder.where(), "after step 3");
  recorder.settle();
  auto const& step = recorder.last_step();
  EXPECT_EQ(of(step, Phase::comm_exposed), 0);
  EXPECT_EQ(step.loss, 2);
  EXPECT_EQ(step.samples, 64);
  EXPECT_EQ(step.lr, 0.5);
}

TEST(Recorder, StepsDoNotLeakIntoEachOther) {
  Recorder recorder(gpu::Device{}, 0);
  recorder.begin_step(0, 0);
  recorder.enter(Phase::data);
  std::this_thread::sleep_for(5ms);
  recorder.end_step();
  auto const first = recorder.last_step();
  recorder.begin_step(1, 0);
  recorder.enter(Phase::data);
  recorder.end_step();
  auto const& second = recorder.last_step();
  EXPECT_GE(second.t_begin, first.t_begin + first.duration);
  EXPECT_LT(second.duration, first.duration);
}

TEST(Recorder, NamesAreInternedOnce) {
  Recorder recorder(gpu::Device{}, 1);
  auto const a = recorder.intern("a");
  auto const b = recorder.intern("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(recorder.intern("a"), a);
}

TEST(Recorder, PhasesOfSampledStepsAreSpans) {
  auto const trace = recorded(2, [](Recorder& recorder) {
    for (std::int64_t step = 0; step < 5; ++step) {
      recorder.begin_step(step, 0);
      EXPECT_EQ(recorder.sampled_step(), step % 2 == 0 ? step : -1);
      recorder.enter(Phase::forward);
      recorder.enter(Phase::optimizer);
      recorder.end_step();
    }
  });
  auto const& spans = trace.table(spans_table());
  EXPECT_EQ(spans.integers("step"), (h5::Integers{0, 0, 2, 2, 4, 4}));
  auto const& names = trace.table(names_table()).texts("name");
  EXPECT_EQ(names.at(static_cast<std::size_t>(spans.integers("name_id")[0])), "forward");
  EXPECT_EQ(names.at(static_cast<std::size_t>(spans.integers("name_id")[1])), "optimizer");
  auto const& steps = trace.table(steps_table());
  auto const begin = steps.integers("t_begin_ns")[2];
  EXPECT_EQ(spans.integers("t_begin_ns")[2], begin);
  EXPECT_EQ(spans.integers("t_end_ns")[2], spans.integers("t_begin_ns")[3]);
  EXPECT_EQ(spans.integers("t_end_ns")[3], begin + steps.integers("dur_step_ns")[2]);
}

/// Printed for people; the bound is far above what a loaded machine shows.
TEST(Recorder, AStepCostsMicroseconds) {
  Recorder recorder(gpu::Device{}, 50);
  constexpr int steps = 2000;
  auto const begin = monotonic_ns();
  for (int step = 0; step < steps; ++step) {
    recorder.begin_step(step, 0);
    for (auto const phase : {Phase::data, Phase::forward, Phase::backward, Phase::comm_exposed,
                             Phase::optimizer, Phase::comm_exposed, Phase::optimizer})
      recorder.enter(phase);
    recorder.end_step();
  }
  auto const each = static_cast<double>(monotonic_ns() - begin) / steps * 1e-3;
  std::printf("the trace takes %.2f us of a step, every 50th sampled\n", each);
  EXPECT_LT(each, 1000);
}

TEST(Recorder, AStepOfMorePhasesThanMarksStaysSane) {
  Recorder recorder(gpu::Device{}, 0);
  recorder.begin_step(0, 0);
  for (int i = 0; i < 20'000; ++i) recorder.enter(i % 2 == 0 ? Phase::forward : Phase::backward);
  recorder.end_step();
  auto const& step = recorder.last_step();
  EXPECT_GE(step.duration, 0);
  EXPECT_EQ(std::accumulate(step.durations.begin(), step.durations.end(), std::int64_t{0}),
            step.duration);
  recorder.begin_step(1, 0);
  recorder.enter(Phase::forward);
  recorder.end_step();
  EXPECT_GT(recorder.last_step().duration, 0);
}

TEST(Recorder, EventsAndMemoryReachTheFile) {
  auto const trace = recorded(1, [](Recorder& recorder) {
    recorder.event(Severity::error, "kind", "text");
    recorder.sample_memory();
  });
  auto const& names = trace.table(names_table()).texts("name");
  auto const& events = trace.table(events_table());
  ASSERT_EQ(events.rows, 1);
  EXPECT_EQ(events.integers("severity").front(), 2);
  EXPECT_EQ(names.at(static_cast<std::size_t>(events.integers("name_id").front())), "kind");
  EXPECT_EQ(names.at(static_cast<std::size_t>(events.integers("text_id").front())), "text");
  EXPECT_GT(trace.table(memory_table()).integers("rss_B").front(), 0);
}

}  // namespace
}  // namespace stratagem::trace
