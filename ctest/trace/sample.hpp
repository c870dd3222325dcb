#pragma once

#include "base/clock.hpp"
#include "h5/error.hpp"
#include "trace/rank_trace.hpp"
#include "trace/trace_file.hpp"

namespace stratagem::trace {

inline TraceHeader sample_header(int rank, int world, std::string const& model = "lenet") {
  return {.provenance = {{"version", std::string("0")},
                         {"config", std::string("schema: 1")},
                         {"model", model}},
          .process = {{"rank", std::int64_t{rank}}, {"world", std::int64_t{world}}}};
}

/// A step of five unequal phases.
inline StepRecord sample_step(std::int64_t step, std::int64_t epoch = 0) {
  StepRecord record{.step = step,
                    .epoch = epoch,
                    .t_begin = monotonic_ns(),
                    .durations = {1, 20, 300, 4000, 50000}};
  record.duration = 54321;
  record.loss = 1.0 / static_cast<double>(step + 1);
  record.samples = 64;
  record.lr = 0.01;
  return record;
}

/// The file of one rank that made the steps `first` to `last` - 1 and two spans of the last one,
/// and served two pushes of two workers, of which the second came one version late.
inline void write_sample(std::filesystem::path const& path, int rank, int world, std::int64_t first,
                         std::int64_t last, std::string const& model = "lenet") {
  h5::initialise_library();
  std::filesystem::create_directories(path.parent_path());
  Recorder recorder(gpu::Device{}, 1);
  TraceFile file(path, sample_header(rank, world, model), recorder,
                 {.offset_to_rank0 = 5, .uncertainty = 2}, 0);
  for (auto step = first; step < last; ++step) recorder.record(sample_step(step));
  for (auto lane : {Lane::comm, Lane::loader})
    recorder.record(SpanRecord{.name = recorder.intern("bucket of " + std::to_string(first)),
                               .lane = lane,
                               .t_begin = 10,
                               .t_end = 20,
                               .step = last - 1,
                               .bytes = 8});
  for (std::int64_t worker : {0, 1})
    recorder.record(PsRecord{.worker = worker,
                             .step = last - 1,
                             .applied_version = worker + 1,
                             .lag = worker,
                             .t_ready = 10,
                             .t_seen = 20,
                             .t_applied = 30});
  recorder.record(EpochRecord{.epoch = 0, .time_s = 1.5});
  recorder.event(Severity::warning, "kind", "what happened after " + std::to_string(first));
  recorder.sample_memory();
  if (auto const failure = file.close(Status::complete, {.offset_to_rank0 = 6, .uncertainty = 2}))
    throw *failure;
}

}  // namespace stratagem::trace
