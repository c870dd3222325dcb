#include "trace/columns.hpp"

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

namespace stratagem::trace {
namespace {

/// A column of what `get` gives: real numbers are real, all others whole.
template <class Record, class Get>
Column<Record> column(std::string name, std::string unit, std::string meaning, Get get) {
  constexpr bool is_real =
      std::floating_point<std::remove_cvref_t<std::invoke_result_t<Get, Record const&>>>;
  Column<Record> made{std::move(name), std::move(unit), std::move(meaning), {}};
  if constexpr (is_real)
    made.value = typename Column<Record>::Real(
        [get](Record const& r) -> double { return std::invoke(get, r); });
  else
    made.value = typename Column<Record>::Integer(
        [get](Record const& r) { return static_cast<std::int64_t>(std::invoke(get, r)); });
  return made;
}

}  // namespace

Columns<StatusRow> const& status_columns() {
  constexpr auto of = [](auto... declared) { return column<StatusRow>(declared...); };
  static Columns<StatusRow> const all{
      of("t_ns", "ns", "monotonic time", &StatusRow::t),
      of("status", "1", "0 running, 1 complete, 2 stopped early, 3 failed; the last row holds",
         &StatusRow::status),
      of("dropped", "1", "records lost because a queue was full", &StatusRow::dropped)};
  return all;
}

Columns<ClockRow> const& clock_columns() {
  constexpr auto of = [](auto... declared) { return column<ClockRow>(declared...); };
  static Columns<ClockRow> const all{
      of("monotonic_ns", "ns", "this rank's monotonic clock", &ClockRow::monotonic),
      of("wall_ns", "ns", "time since 1970 UTC", &ClockRow::wall),
      of("offset_to_rank0_ns", "ns", "add to this rank's monotonic times to get rank 0's",
         &ClockRow::offset_to_rank0),
      of("uncertainty_ns", "ns", "half of the round trip that measured the offset",
         &ClockRow::uncertainty)};
  return all;
}

Columns<StepRecord> const& step_columns() {
  constexpr auto of = [](auto... declared) { return column<StepRecord>(declared...); };
  constexpr auto phase = [](Phase phase) {
    return [phase](StepRecord const& r) { return r.durations[static_cast<std::size_t>(phase)]; };
  };
  static Columns<StepRecord> const all{
      of("step", "1", "global step", &StepRecord::step),
      of("epoch", "1", "epoch", &StepRecord::epoch),
      of("t_begin_ns", "ns", "monotonic time of the step's begin", &StepRecord::t_begin),
      of("dur_data_ns", "ns", "waiting for the batch", phase(Phase::data)),
      of("dur_forward_ns", "ns", "forward pass", phase(Phase::forward)),
      of("dur_backward_ns", "ns", "backward pass", phase(Phase::backward)),
      of("dur_comm_exposed_ns", "ns", "communication that computation did not hide",
         phase(Phase::comm_exposed)),
      of("dur_optimizer_ns", "ns", "optimizer", phase(Phase::optimizer)),
      of("dur_step_ns", "ns", "whole step", &StepRecord::duration),
      of("loss", "1", "mean training loss of the global batch", &StepRecord::loss),
      of("samples", "1", "samples of this rank; of text, tokens", &StepRecord::samples),
      of("lr", "1", "learning rate", &StepRecord::lr)};
  return all;
}

Columns<EpochRecord> const& epoch_columns() {
  constexpr auto of = [](auto... declared) { return column<EpochRecord>(declared...); };
  static Columns<EpochRecord> const all{
      of("epoch", "1", "epoch", &EpochRecord::epoch),
      of("time_s", "s", "training time, evaluation apart", &EpochRecord::time_s),
      of("train_loss", "1", "mean training loss", &EpochRecord::train_loss),
      of("train_accuracy", "1", "training accuracy, 0 to 1", &EpochRecord::train_accuracy),
      of("test_loss", "1", "mean test loss", &EpochRecord::test_loss),
      of("test_accuracy", "1", "test accuracy, 0 to 1", &EpochRecord::test_accuracy),
      of("images_per_s", "1/s", "training images per second of all ranks",
         &EpochRecord::images_per_s),
      of("comm_bytes", "B", "bytes sent by this rank", &EpochRecord::comm_bytes),
      of("mem_peak_allocated_B", "B", "peak of live tensor bytes",
         &EpochRecord::mem_peak_allocated),
      of("mem_peak_reserved_B", "B", "bytes the allocator held from the system",
         &EpochRecord::mem_peak_reserved),
      of("energy_J", "J", "energy of this rank's device", &EpochRecord::energy_J)};
  return all;
}

Columns<PsRecord> const& ps_columns() {
  constexpr auto of = [](auto... declared) { return column<PsRecord>(declared...); };
  static Columns<PsRecord> const all{
      of("worker", "1", "whose push the server treats; -1 all workers' in one update",
         &PsRecord::worker),
      of("step", "1", "global step of its samples", &PsRecord::step),
      of("first_slot", "1", "place of its first sample in the global batch", &PsRecord::first_slot),
      of("chunk", "1",
         "whose versions these are, in the order of the gradients; -1 all of the server's",
         &PsRecord::chunk),
      of("base_version", "1", "version of the parameters it was computed with",
         &PsRecord::base_version),
      of("applied_version", "1", "first version of the parameters that has it",
         &PsRecord::applied_version),
      of("lag", "1", "updates since the base version, without its own", &PsRecord::lag),
      of("gap", "1", "root mean square of the parameters' change since the base version",
         &PsRecord::gap),
      of("weight", "1", "factor of the gradient by the policy", &PsRecord::weight),
      of("factor", "1", "factor beside it: takes means, undoes the loss scale, clips",
         &PsRecord::factor),
      of("loss_scale", "1", "factor of the loss it was computed from", &PsRecord::loss_scale),
      of("lr", "1", "learning rate", &PsRecord::lr),
      of("dropped", "1", "1 for a push that was not applied", &PsRecord::dropped),
      of("overflowed", "1", "1 for one dropped because its scaled gradients overflowed",
         &PsRecord::overflowed),
      of("pulled", "1", "1 where parameters came back for it", &PsRecord::pulled),
      of("queue_depth", "1", "pushes under way, this one included", &PsRecord::queue_depth),
      of("t_ready_ns", "ns", "monotonic time when it was announced", &PsRecord::t_ready),
      of("t_seen_ns", "ns", "monotonic time when all of it had come", &PsRecord::t_seen),
      of("t_applied_ns", "ns", "monotonic time when it was applied", &PsRecord::t_applied),
      of("dur_busy_ns", "ns", "time the server computed for it", &PsRecord::busy),
      of("bytes", "B", "bytes received", &PsRecord::bytes)};
  return all;
}

Columns<SpanRecord> const& span_columns() {
  constexpr auto of = [](auto... declared) { return column<SpanRecord>(declared...); };
  static Columns<SpanRecord> const all{
      of("name_id", "1", "row of /names", &SpanRecord::name),
      of("lane", "1", "0 compute, 1 comm, 2 loader", &SpanRecord::lane),
      of("t_begin_ns", "ns", "begin", &SpanRecord::t_begin),
      of("t_end_ns", "ns", "end", &SpanRecord::t_end),
      of("step", "1", "global step", &SpanRecord::step),
      of("bytes", "B", "bytes sent by this rank", &SpanRecord::bytes),
      of("peer", "1", "other rank, -1 for none", &SpanRecord::peer)};
  return all;
}

Columns<MemoryRecord> const& memory_columns() {
  constexpr auto of = [](auto... declared) { return column<MemoryRecord>(declared...); };
  static Columns<MemoryRecord> const all{
      of("t_ns", "ns", "monotonic time", &MemoryRecord::t),
      of("allocated_B", "B", "live tensor bytes",
         [](MemoryRecord const& r) { return r.use.total(); }),
      of("reserved_B", "B", "bytes the allocator holds from the system", &MemoryRecord::reserved),
      of("rss_B", "B", "resident set of the process", &MemoryRecord::rss)};
  return all;
}

Columns<MemoryRecord> const& memory_breakdown_columns() {
  constexpr auto of = [](gpu::MemoryCategory category, auto meaning) {
    auto const place = static_cast<std::size_t>(category);
    return column<MemoryRecord>(std::string(gpu::memory_category_names[place]), "B", meaning,
                                [place](MemoryRecord const& r) { return r.use.bytes[place]; });
  };
  using enum gpu::MemoryCategory;
  static Columns<MemoryRecord> const all{
      column<MemoryRecord>("t_ns", "ns", "monotonic time", &MemoryRecord::t),
      of(parameters, "parameters and their compute copies"),
      of(gradients, "gradient buffers"),
      of(optimizer, "optimizer state"),
      of(buffers, "model buffers such as running statistics"),
      of(activations, "kept between forward and backward"),
      of(workspace, "data set, batches, scratch and gradients of activations")};
  return all;
}

Columns<DeviceRecord> const& device_columns() {
  constexpr auto of = [](auto name, auto unit, auto meaning, double gpu::DeviceSample::*member) {
    return column<DeviceRecord>(name, unit, meaning,
                                [member](DeviceRecord const& r) { return r.sample.*member; });
  };
  static Columns<DeviceRecord> const all{
      column<DeviceRecord>("t_ns", "ns", "monotonic time", &DeviceRecord::t),
      of("utilization", "1", "busy share of the GPU; on a CPU, cores in use",
         &gpu::DeviceSample::utilization),
      of("memory_used_B", "B", "device memory in use; on a CPU, resident set",
         &gpu::DeviceSample::memory_used),
      of("power_W", "W", "power", &gpu::DeviceSample::power),
      of("energy_mJ", "mJ", "energy since the driver was loaded", &gpu::DeviceSample::energy),
      of("clock_MHz", "MHz", "SM clock", &gpu::DeviceSample::clock)};
  return all;
}

Columns<EventRecord> const& event_columns() {
  constexpr auto of = [](auto... declared) { return column<EventRecord>(declared...); };
  static Columns<EventRecord> const all{
      of("t_ns", "ns", "monotonic time", &EventRecord::t),
      of("severity", "1", "0 info, 1 warning, 2 error", &EventRecord::severity),
      of("name_id", "1", "kind, row of /names", &EventRecord::name),
      of("text_id", "1", "text, row of /names", &EventRecord::text)};
  return all;
}

}  // namespace stratagem::trace
