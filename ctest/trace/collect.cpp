#include "trace/collect.hpp"

#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "support/child.hpp"
#include "support/scratch.hpp"
#include "trace/sample.hpp"
#include "trace/validate.hpp"

namespace stratagem::trace {
namespace {

namespace fs = std::filesystem;

fs::path rank_file(fs::path const& run, int attempt, int rank) {
  return run / "trace" / str("a", attempt) / str("rank-000", rank, ".h5");
}

h5::Integers range(std::int64_t first, std::int64_t last) {
  h5::Integers values(static_cast<std::size_t>(last - first));
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(Collect, RanksComeInOrderWithoutRemarks) {
  test::Scratch const run;
  for (int rank : {2, 0, 1}) write_sample(rank_file(run.path(), 0, rank), rank, 3, 0, 5 + rank);
  auto const traces = collect_run(run.path());
  EXPECT_EQ(traces.remarks, std::vector<std::string>{});
  ASSERT_EQ(traces.ranks.size(), 3U);
  for (int rank = 0; rank < 3; ++rank) {
    auto const& trace = traces.ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(trace.rank(), rank);
    EXPECT_EQ(trace.table(steps_table()).rows, 5 + rank);
  }
}

TEST(Collect, OfARepeatedStepTheLaterAttemptWins) {
  test::Scratch const run;
  write_sample(rank_file(run.path(), 0, 0), 0, 1, 0, 10);
  write_sample(rank_file(run.path(), 1, 0), 0, 1, 6, 15);
  write_sample(rank_file(run.path(), 10, 0), 0, 1, 12, 13);
  auto const traces = collect_run(run.path());
  ASSERT_EQ(traces.ranks.size(), 1U);
  auto const& trace = traces.ranks.front();
  EXPECT_EQ(trace.table(steps_table()).integers("step"), range(0, 13));
  EXPECT_EQ(problems_of(trace), std::vector<std::string>{});
  // Names of every attempt still say what its spans and events meant.
  auto const& names = trace.table(names_table()).texts("name");
  auto const& spans = trace.table(spans_table());
  EXPECT_EQ(names.at(static_cast<std::size_t>(spans.integers("name_id").back())), "bucket of 12");
  auto const& events = trace.table(events_table()).integers("text_id");
  ASSERT_EQ(events.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(names.at(static_cast<std::size_t>(events[i])),
              str("what happened after ", std::array{0, 6, 12}[i]));
}

/// Rows of /spans and /ps by step, and versions, of rank 0.
struct Joined {
  explicit Joined(fs::path const& run) : trace(collect_run(run).ranks.front()) {}
  h5::Integers const& of(h5::TableSpec const& table, std::string const& column) const {
    return trace.table(table).integers(column);
  }
  RankTrace trace;
};

void write_attempt(fs::path const& path, std::vector<std::int64_t> const& span_steps,
                   std::vector<PsRecord> const& pushes) {
  h5::initialise_library();
  fs::create_directories(path.parent_path());
  Recorder recorder(gpu::Device{}, 1);
  TraceFile file(path, sample_header(0, 1), recorder, {}, 0);
  for (auto const step : span_steps)
    recorder.record(SpanRecord{.name = recorder.intern("forward"), .step = step});
  for (auto const& push : pushes) recorder.record(push);
  ASSERT_FALSE(file.close(Status::stopped, {}).has_value());
}

TEST(Collect, RowsThatAreNotInTheOrderOfStepsAreJoinedByTheirSteps) {
  test::Scratch const run;
  // Workers push their shares in any order; the second attempt begins with step 2, not with the
  // first push that it met.
  write_attempt(rank_file(run.path(), 0, 0), {0, 1, 2, 0, 1, 2},
                {{.step = 1, .applied_version = 1},
                 {.step = 0, .applied_version = 2, .lag = 1},
                 {.step = 2, .applied_version = 3, .lag = 2}});
  write_attempt(rank_file(run.path(), 1, 0), {2, 3},
                {{.step = 3, .applied_version = 1}, {.step = 2, .applied_version = 2, .lag = 1}});
  Joined const joined(run.path());
  EXPECT_EQ(joined.of(spans_table(), "step"), (h5::Integers{0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(joined.of(ps_table(), "step"), (h5::Integers{1, 0, 3, 2}));
  EXPECT_EQ(joined.of(ps_table(), "applied_version"), (h5::Integers{1, 2, 3, 4}));
  EXPECT_EQ(joined.of(ps_table(), "base_version"), (h5::Integers{0, 0, 2, 2}));
  EXPECT_EQ(problems_of(joined.trace), std::vector<std::string>{});
}

TEST(Collect, VersionsOfAChunkGoOnWithItsOwn) {
  test::Scratch const run;
  write_attempt(rank_file(run.path(), 0, 0), {},
                {{.step = 0, .chunk = 4, .applied_version = 1},
                 {.step = 0, .chunk = 7, .applied_version = 1},
                 {.step = 1, .chunk = 4, .applied_version = 2, .lag = 1}});
  write_attempt(rank_file(run.path(), 1, 0), {},
                {{.step = 2, .chunk = 7, .applied_version = 1},
                 {.step = 2, .chunk = 4, .applied_version = 1}});
  EXPECT_EQ(Joined(run.path()).of(ps_table(), "applied_version"), (h5::Integers{1, 1, 2, 2, 3}));
}

TEST(Collect, AttemptsOfDifferentModelsAreNotJoined) {
  test::Scratch const run;
  write_sample(rank_file(run.path(), 0, 0), 0, 1, 0, 10, "resnet50");
  write_sample(rank_file(run.path(), 1, 0), 0, 1, 0, 3, "lenet");
  auto const traces = collect_run(run.path());
  ASSERT_EQ(traces.ranks.size(), 1U);
  EXPECT_EQ(traces.ranks.front().table(steps_table()).rows, 3);
  ASSERT_EQ(traces.remarks.size(), 1U);
  for (auto const* expected : {"left out", "a0", "resnet50 and lenet"})
    EXPECT_NE(traces.remarks.front().find(expected), std::string::npos) << traces.remarks.front();
}

TEST(Collect, MissingTornAndForeignFilesAreRemarkedOn) {
  test::Scratch const run;
  write_sample(rank_file(run.path(), 0, 0), 0, 4, 0, 5);
  write_sample(rank_file(run.path(), 0, 1), 1, 4, 0, 5);
  auto const whole = read_text(rank_file(run.path(), 0, 1), ExitCode::io);
  replace_file(rank_file(run.path(), 0, 1), whole.substr(0, whole.size() / 2));
  replace_file(rank_file(run.path(), 0, 2), "not HDF5");
  auto const traces = collect_run(run.path());
  EXPECT_EQ(traces.ranks.size(), 1U);
  auto const remarks = join(traces.remarks, "\n");
  for (auto const* expected :
       {"rank-0001.h5", "rank-0002.h5", "rank 1 of 4 has no trace", "rank 2 of 4", "rank 3 of 4"})
    EXPECT_NE(remarks.find(expected), std::string::npos) << expected << " in\n" << remarks;
}

TEST(Collect, WhatIsNotOfThisRunIsLeftOut) {
  test::Scratch const run, elsewhere;
  for (int rank : {0, 1}) write_sample(rank_file(run.path(), 0, rank), rank, 2, 0, 5);
  write_sample(elsewhere / "rank-0007.h5", 7, 8, 0, 5);
  auto const folder = run / "trace" / "a0";
  fs::copy_file(elsewhere / "rank-0007.h5", folder / "rank-0002.h5");  // another rank's
  fs::create_symlink(elsewhere / "rank-0007.h5", folder / "rank-0007.h5");
  fs::create_directory(folder / "rank-0003.h5");
  fs::create_symlink("/dev/zero", folder / "rank-0004.h5");
  fs::create_directory_symlink(elsewhere.path(), run / "trace" / "a1");
  for (auto const* name : {"rank-.h5", "rank--1.h5", "rank-99999999999999999999.h5", "rank-5.txt"})
    fs::copy_file(elsewhere / "rank-0007.h5", folder / name);
  auto const traces = collect_run(run.path());
  ASSERT_EQ(traces.ranks.size(), 2U);
  EXPECT_EQ(traces.remarks.size(), 4U) << join(traces.remarks, "\n");
  auto const remarks = join(traces.remarks, "\n");
  for (auto const* expected :
       {"rank-0002.h5 holds the trace of rank 7", "rank-0003.h5 is no regular file",
        "rank-0004.h5 is no regular file", "rank-0007.h5 is no regular file"})
    EXPECT_NE(remarks.find(expected), std::string::npos) << expected << " in\n" << remarks;
}

/// A whole trace but for one attribute.
void write_altered(fs::path const& path, std::string const& group, std::string const& name,
                   std::optional<h5::AttributeValue> const& value) {
  h5::FileWriter file(path, h5::FileWriter::Mode::archive);
  auto const set = [&](std::string const& of, std::string const& key, h5::AttributeValue known) {
    bool const altered = of == group && key == name;
    if (!altered) file.set_attribute(of, key, known);
    if (altered && value) file.set_attribute(of, key, *value);
  };
  set("/", "schema_name", std::string(schema_name));
  set("/", "schema_version", schema_version);
  auto const header = sample_header(0, 1);
  for (auto const& [of, attributes] :
       {std::pair{"/provenance", &header.provenance}, {"/process", &header.process}}) {
    file.create_group(of);
    for (auto const& [key, known] : *attributes) set(of, key, known);
  }
  for (auto const& spec : tables()) file.create_table(spec).close();
  file.close();
}

TEST(Collect, OtherVersionsAndImpossibleRanksAreLeftOut) {
  using Value = h5::AttributeValue;
  struct Case {
    char const* group;
    char const* name;
    std::optional<Value> value;
    char const* remark;  ///< none where it is read
  };
  for (auto const& [group, name, value, remark] : std::vector<Case>{
           {"/", "other", Value(std::int64_t{1}), nullptr},
           {"/", "schema_version", Value(schema_version + 1), "another schema version"},
           {"/", "schema_version", Value(std::string("1")), "another schema version"},
           {"/", "schema_version", std::nullopt, "another schema version"},
           {"/", "schema_name", Value(std::string("else")), "is not a trace of this program"},
           {"/process", "rank", std::nullopt, "/process has no rank"},
           {"/process", "rank", Value(std::int64_t{1} << 40), "/process has no rank"},
           {"/process", "rank", Value(std::string("0")), "/process has no rank"},
           {"/process", "rank", Value(std::int64_t{3}), "holds the trace of rank 3"},
           {"/process", "world", std::nullopt, nullptr},
           {"/process", "world", Value(std::string("many")), nullptr},
           {"/process", "world", Value(std::int64_t{1} << 60), "more have none"}}) {
    test::Scratch const run;
    h5::initialise_library();
    write_sample(rank_file(run.path(), 0, 1), 1, 1, 0, 5);
    write_altered(rank_file(run.path(), 0, 0), group, name, value);
    auto const remarks = join(collect_run(run.path()).remarks, "\n");
    if (remark != nullptr) {
      EXPECT_NE(remarks.find(remark), std::string::npos) << remark << " in\n" << remarks;
    } else {
      EXPECT_EQ(remarks, "") << group << name;
    }
  }
}

TEST(Collect, AKilledRankIsReadAndRemarkedOn) {
  test::Scratch const run;
  auto const path = rank_file(run.path(), 0, 0);
  fs::create_directories(path.parent_path());
  test::Gate written;
  test::Child rank([&] {
    h5::initialise_library();
    Recorder recorder(gpu::Device{}, 0);
    TraceFile const file(path, sample_header(0, 1), recorder, {}, 0);
    for (std::int64_t step = 0; step < 7; ++step) recorder.record(sample_step(step));
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    written.open();
    ::pause();
    return 0;
  });
  written.pass();
  rank.kill();
  rank.wait();
  auto const traces = collect_run(run.path());
  ASSERT_EQ(traces.remarks.size(), 1U) << join(traces.remarks, "\n");
  EXPECT_NE(traces.remarks.front().find("7 steps were read"), std::string::npos)
      << traces.remarks.front();
  EXPECT_EQ(traces.ranks.front().table(steps_table()).rows, 7);
}

TEST(Collect, WithoutAnyUsableTraceIsBadData) {
  test::Scratch const run;
  auto code = [&] {
    try {
      collect_run(run.path());
    } catch (Error const& error) {
      return error.code();
    }
    return ExitCode::done;
  };
  EXPECT_EQ(code(), ExitCode::bad_data);
  fs::create_directories(run / "trace" / "a0");
  EXPECT_EQ(code(), ExitCode::bad_data);
  replace_file(rank_file(run.path(), 0, 0), "not HDF5");
  EXPECT_EQ(code(), ExitCode::bad_data);
}

TEST(Collect, TheCollectedFileHoldsTheSameAndInputsStayUntouched) {
  test::Scratch const run;
  for (int rank : {0, 1}) write_sample(rank_file(run.path(), 0, rank), rank, 2, 0, 50);
  auto const before = read_text(rank_file(run.path(), 0, 0), ExitCode::io);
  auto const traces = collect_run(run.path());
  for (int round = 0; round < 2; ++round) write_collected(traces, run / "collected.h5");
  EXPECT_EQ(read_text(rank_file(run.path(), 0, 0), ExitCode::io), before);
  EXPECT_EQ(schema_of(run / "collected.h5"), collected_schema_name);
  auto const collected = read_collected_trace(run / "collected.h5");
  ASSERT_EQ(collected.size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(collected[rank].process, traces.ranks[rank].process);
    EXPECT_EQ(collected[rank].provenance, traces.ranks[rank].provenance);
    EXPECT_EQ(problems_of(collected[rank]), std::vector<std::string>{});
    for (auto const& spec : {steps_table(), spans_table(), names_table(), memory_breakdown_table()})
      EXPECT_EQ(collected[rank].table(spec).columns, traces.ranks[rank].table(spec).columns)
          << spec.path;
  }
}

}  // namespace
}  // namespace stratagem::trace
