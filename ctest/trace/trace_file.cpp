#include "trace/trace_file.hpp"

#include <chrono>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support/child.hpp"
#include "support/scratch.hpp"
#include "trace/sample.hpp"
#include "trace/validate.hpp"

namespace stratagem::trace {
namespace {

using namespace std::chrono_literals;

TEST(TraceFile, ReadsBackAsRecorded) {
  test::Scratch const scratch;
  write_sample(scratch / "x.h5", 2, 4, 0, 600);
  auto const trace = read_rank_trace(scratch / "x.h5");
  EXPECT_TRUE(trace.closed_cleanly);
  EXPECT_EQ(trace.status, Status::complete);
  EXPECT_EQ(trace.dropped, 0);
  EXPECT_EQ(trace.rank(), 2);
  EXPECT_EQ(problems_of(trace), std::vector<std::string>{});
  auto const& steps = trace.table(steps_table());
  ASSERT_EQ(steps.rows, 600);
  EXPECT_EQ(steps.integers("step").back(), 599);
  EXPECT_EQ(steps.integers("dur_data_ns").back(), 1);
  EXPECT_EQ(steps.integers("dur_optimizer_ns").back(), 50000);
  EXPECT_EQ(steps.reals("loss").back(), 1.0 / 600);
  EXPECT_EQ(trace.table(clock_table()).integers("offset_to_rank0_ns"), (h5::Integers{5, 6}));
  EXPECT_EQ(trace.table(spans_table()).rows, 2);
}

TEST(TraceFile, AFullQueueIsCounted) {
  test::Scratch const scratch;
  h5::initialise_library();
  Recorder recorder(gpu::Device{}, 0);
  TraceFile file(scratch / "x.h5", sample_header(0, 1), recorder, {}, 0);
  constexpr int epochs = 3000;
  for (int i = 0; i < epochs; ++i) recorder.record(EpochRecord{.epoch = i});
  ASSERT_FALSE(file.close(Status::complete, {}));
  auto const trace = read_rank_trace(scratch / "x.h5");
  EXPECT_GT(trace.dropped, 0);
  EXPECT_EQ(trace.table(epochs_table()).rows + trace.dropped, epochs);
}

TEST(TraceFile, TheDeviceIsSampledAtItsRate) {
  test::Scratch const scratch;
  h5::initialise_library();
  Recorder recorder(gpu::Device{}, 0);
  TraceFile file(scratch / "x.h5", sample_header(0, 1), recorder, {}, 50);
  std::this_thread::sleep_for(400ms);
  ASSERT_FALSE(file.close(Status::complete, {}));
  auto const trace = read_rank_trace(scratch / "x.h5");
  auto const& device = trace.table(device_table());
  EXPECT_GE(device.rows, 4);
  EXPECT_LE(device.rows, 22);
  EXPECT_GT(device.reals("memory_used_B").front(), 0);
}

TEST(TraceFile, AKilledRankLosesAtMostTheLastSecond) {
  test::Scratch const scratch;
  auto const path = scratch / "x.h5";
  test::Child rank([&]() -> int {
    h5::initialise_library();
    Recorder recorder(gpu::Device{}, 0);
    TraceFile const file(path, sample_header(0, 1), recorder, {}, 2);
    for (std::int64_t step = 0;; ++step) {
      recorder.record(sample_step(step));
      std::this_thread::sleep_for(5ms);
    }
  });
  std::this_thread::sleep_for(2600ms);
  auto const killed_at = monotonic_ns();
  rank.kill();
  EXPECT_EQ(rank.wait(), -SIGKILL);
  auto const trace = read_rank_trace(path);
  EXPECT_FALSE(trace.closed_cleanly);
  EXPECT_EQ(trace.status, Status::running);
  auto const& begins = trace.table(steps_table()).integers("t_begin_ns");
  ASSERT_FALSE(begins.empty());
  EXPECT_LT(killed_at - begins.back(), 1'500'000'000) << "a second, and what flushing took";
  EXPECT_EQ(problems_of(trace), std::vector<std::string>{});
}

TEST(TraceFile, UnwindingKeepsTheRowsButSaysRunning) {
  test::Scratch const scratch;
  h5::initialise_library();
  {
    Recorder recorder(gpu::Device{}, 0);
    TraceFile const file(scratch / "x.h5", sample_header(0, 1), recorder, {}, 0);
    recorder.record(sample_step(0));
  }
  auto const trace = read_rank_trace(scratch / "x.h5");
  EXPECT_EQ(trace.status, Status::running);
  EXPECT_EQ(trace.table(steps_table()).rows, 1);
}

TEST(TraceFile, AFullDiskIsReportedAtTheEnd) {
  test::Scratch const scratch;
  auto const path = scratch / "x.h5";
  test::Child rank([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    h5::initialise_library();
    Recorder recorder(gpu::Device{}, 0);
    TraceFile file(path, sample_header(0, 1), recorder, {}, 0);
    rlimit const limit{std::filesystem::file_size(path) + 4096, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (std::int64_t step = 0; step < 10'000; ++step) recorder.record(sample_step(step));
    std::this_thread::sleep_for(1200ms);  // the writer fails once,
    for (std::int64_t step = 0; step < 40'000; ++step) recorder.record(sample_step(step));
    auto const failure = file.close(Status::complete, {});  // and training went on all the same
    return failure ? to_int(failure->code()) : 0;
  });
  EXPECT_EQ(rank.wait(), to_int(ExitCode::io));
}

TEST(TraceFile, AFullDiskAtCloseIsReported) {
  test::Scratch const scratch;
  auto const path = scratch / "x.h5";
  test::Child rank([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    h5::initialise_library();
    Recorder recorder(gpu::Device{}, 0);
    TraceFile file(path, sample_header(0, 1), recorder, {}, 0);
    rlimit const limit{std::filesystem::file_size(path), RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    recorder.record(sample_step(0));
    auto const failure = file.close(Status::complete, {});
    return failure ? to_int(failure->code()) : 0;
  });
  EXPECT_EQ(rank.wait(), to_int(ExitCode::io));
}

TEST(TraceFile, NeverOverwrites) {
  test::Scratch const scratch;
  write_sample(scratch / "x.h5", 0, 1, 0, 3);
  Recorder recorder(gpu::Device{}, 0);
  EXPECT_THROW(TraceFile(scratch / "x.h5", sample_header(0, 1), recorder, {}, 0), Error);
  EXPECT_EQ(read_rank_trace(scratch / "x.h5").table(steps_table()).rows, 3);
}

}  // namespace
}  // namespace stratagem::trace
