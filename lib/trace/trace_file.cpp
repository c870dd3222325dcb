#include "trace/trace_file.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/clock.hpp"
#include "base/system.hpp"
#include "trace/columns.hpp"

namespace stratagem::trace {
namespace {

using h5::ColumnData;
using h5::Texts;

/// Together with the time of writing, less than the second that a killed rank may lose.
constexpr auto write_period = std::chrono::milliseconds(800);

/// Thirty years mean never, and can be added to a time without overflow.
constexpr double longest_period_ns = 1e18;

}  // namespace

TraceFile::TraceFile(std::filesystem::path const& path, TraceHeader const& header,
                     Recorder& recorder, ClockSample const& clock, double device_sample_hz)
    : recorder_(recorder), file_(path, h5::FileWriter::Mode::streaming) {
  file_.set_attribute("/", "schema_name", std::string(schema_name));
  file_.set_attribute("/", "schema_version", schema_version);
  file_.set_attribute("/", "created_utc", utc_time(wall_ns()));
  for (auto const& [group, attributes] :
       {std::pair{"/provenance", &header.provenance}, {"/process", &header.process}}) {
    file_.create_group(group);
    for (auto const& [name, value] : *attributes) file_.set_attribute(group, name, value);
  }
  for (auto const& spec : tables()) tables_.emplace(spec.path, file_.create_table(spec));
  file_.start_streaming();
  append_status(Status::running);
  append_clock(clock);
  for (auto& [_, table] : tables_) table.flush();
  file_.flush(true);
  writer_ = std::thread([this, device_sample_hz] { run(device_sample_hz); });
}

TraceFile::~TraceFile() {
  // Without close(), the rows are kept, but the file still says "running", because it was not ended
  // properly.
  if (!writer_.joinable()) return;
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

std::optional<Error> TraceFile::close(Status status, ClockSample const& clock) {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_.join();
  try {
    if (!failure_) {
      append_clock(clock);
      append_status(status);
      for (auto& [_, table] : tables_) table.flush();
      file_.flush(false);
    }
    for (auto& [_, table] : tables_) table.close();
    file_.close();
  } catch (Error const& error) {
    if (!failure_) failure_ = error;
  }
  return failure_;
}

void TraceFile::write_soon() {
  {
    std::lock_guard const lock(mutex_);
    hurried_ = true;
  }
  wake_.notify_one();
}

void TraceFile::write_now() {
  std::unique_lock lock(mutex_);
  hurried_ = true;
  auto const own = ++wanted_;
  wake_.notify_one();
  written_.wait(lock, [&] { return done_ >= own; });
}

void TraceFile::run(double device_sample_hz) {
  name_thread("trace");
  auto const telemetry = device_sample_hz > 0 ? gpu::make_telemetry(recorder_.device_) : nullptr;
  std::chrono::nanoseconds const sample_period(
      telemetry ? saturated(std::min(1e9 / device_sample_hz, longest_period_ns)) : 0);
  auto next_sample = std::chrono::steady_clock::now() + sample_period;
  auto next_write = std::chrono::steady_clock::now() + write_period;
  int writes = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    auto const deadline = telemetry ? std::min(next_write, next_sample) : next_write;
    wake_.wait_until(lock, deadline, [this] { return stopping_ || hurried_; });
    bool const last = stopping_, soon = std::exchange(hurried_, false);
    auto const answered = wanted_;
    lock.unlock();
    auto const now = std::chrono::steady_clock::now();
    if (telemetry && (now >= next_sample || last)) {
      device_samples_.push_back({.t = monotonic_ns(), .sample = telemetry->sample()});
      next_sample = now + sample_period;
    }
    if ((now >= next_write || last || soon) && !failure_) {
      try {
        write_pending();
        recorder_.failpoints_.reach("trace_flush", writes);
        file_.flush(++writes % 5 == 0);
      } catch (Error const& error) {
        failure_ = error;
      }
      next_write = now + write_period;
    }
    lock.lock();
    if (soon) done_ = answered;
    if (soon) written_.notify_all();
    if (last) return;
  }
}

void TraceFile::write_pending() {
  auto append = [this](h5::TableSpec const& spec, std::vector<ColumnData> const& data) {
    auto& to = table(spec);
    auto const before = to.rows();
    to.append(data);
    if (to.rows() != before) to.flush();
  };
  // Rows first, then names: the name of a row was interned before the row was pushed.
  auto const steps = recorder_.steps_.drain();
  auto const epochs = recorder_.epochs_.drain();
  auto const updates = recorder_.updates_.drain();
  auto const memory = recorder_.memory_.drain();
  auto const events = recorder_.events_.drain();
  std::vector<SpanRecord> spans;
  for (auto& lane : recorder_.spans_)
    for (auto const& span : lane.drain()) spans.push_back(span);
  Texts names;
  {
    std::lock_guard const lock(recorder_.names_mutex_);
    names.assign(recorder_.names_.begin() + static_cast<std::ptrdiff_t>(names_written_),
                 recorder_.names_.end());
  }
  append(names_table(), {names});
  names_written_ += names.size();
  append(steps_table(), values_of(step_columns(), steps));
  append(epochs_table(), values_of(epoch_columns(), epochs));
  append(ps_table(), values_of(ps_columns(), updates));
  append(spans_table(), values_of(span_columns(), spans));
  append(memory_table(), values_of(memory_columns(), memory));
  append(memory_breakdown_table(), values_of(memory_breakdown_columns(), memory));
  append(device_table(), values_of(device_columns(), device_samples_));
  append(events_table(), values_of(event_columns(), events));
  device_samples_.clear();
}

void TraceFile::append_status(Status status) {
  std::size_t dropped = recorder_.steps_.dropped() + recorder_.epochs_.dropped() +
                        recorder_.updates_.dropped() + recorder_.memory_.dropped() +
                        recorder_.events_.dropped();
  for (auto const& lane : recorder_.spans_) dropped += lane.dropped();
  StatusRow const row{.t = monotonic_ns(),
                      .status = static_cast<std::int64_t>(status),
                      .dropped = static_cast<std::int64_t>(dropped)};
  table(status_table()).append(values_of(status_columns(), {row}));
}

void TraceFile::append_clock(ClockSample const& clock) {
  ClockRow const row{.monotonic = monotonic_ns(),
                     .wall = wall_ns(),
                     .offset_to_rank0 = clock.offset_to_rank0,
                     .uncertainty = clock.uncertainty};
  table(clock_table()).append(values_of(clock_columns(), {row}));
}

h5::TableWriter& TraceFile::table(h5::TableSpec const& spec) {
  return tables_.at(spec.path);
}

}  // namespace stratagem::trace
