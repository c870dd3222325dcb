#include "trace/schema.hpp"

namespace stratagem::trace {
namespace {

using h5::ColumnSpec;
using h5::ColumnType;
using h5::TableSpec;

ColumnSpec integer(char const* name, char const* unit, char const* long_name) {
  return {name, ColumnType::integer, unit, long_name};
}
ColumnSpec real(char const* name, char const* unit, char const* long_name) {
  return {name, ColumnType::real, unit, long_name};
}
ColumnSpec text(char const* name, char const* long_name) {
  return {name, ColumnType::text, "", long_name};
}

}  // namespace

TableSpec const& status_table() {
  static TableSpec const spec{
      "/status",
      {integer("t_ns", "ns", "monotonic time"),
       integer("status", "1",
               "0 running, 1 complete, 2 stopped early, 3 failed; the last row holds"),
       integer("dropped", "1", "records lost because a queue was full")}};
  return spec;
}

TableSpec const& clock_table() {
  static TableSpec const spec{
      "/clock",
      {integer("monotonic_ns", "ns", "this rank's monotonic clock"),
       integer("wall_ns", "ns", "time since 1970 UTC"),
       integer("offset_to_rank0_ns", "ns", "add to this rank's monotonic times to get rank 0's"),
       integer("uncertainty_ns", "ns", "half of the round trip that measured the offset")}};
  return spec;
}

TableSpec const& names_table() {
  static TableSpec const spec{"/names",
                              {text("name", "text that other tables refer to by row number")}};
  return spec;
}

TableSpec const& steps_table() {
  static TableSpec const spec{
      "/steps",
      {integer("step", "1", "global step"), integer("epoch", "1", "epoch"),
       integer("t_begin_ns", "ns", "monotonic time of the step's begin"),
       integer("dur_data_ns", "ns", "waiting for the batch"),
       integer("dur_forward_ns", "ns", "forward pass"),
       integer("dur_backward_ns", "ns", "backward pass"),
       integer("dur_comm_exposed_ns", "ns", "communication that computation did not hide"),
       integer("dur_optimizer_ns", "ns", "optimizer"), integer("dur_step_ns", "ns", "whole step"),
       real("loss", "1", "mean training loss of the global batch"),
       integer("samples", "1", "samples of this rank"), real("lr", "1", "learning rate")}};
  return spec;
}

TableSpec const& epochs_table() {
  static TableSpec const spec{
      "/epochs",
      {integer("epoch", "1", "epoch"), real("time_s", "s", "training time, evaluation apart"),
       real("train_loss", "1", "mean training loss"),
       real("train_accuracy", "1", "training accuracy, 0 to 1"),
       real("test_loss", "1", "mean test loss"),
       real("test_accuracy", "1", "test accuracy, 0 to 1"),
       real("images_per_s", "1/s", "training images per second of all ranks"),
       integer("comm_bytes", "B", "bytes sent by this rank"),
       integer("mem_peak_allocated_B", "B", "peak of live tensor bytes"),
       real("mem_peak_reserved_B", "B", "bytes the allocator held from the system"),
       real("energy_J", "J", "energy of this rank's device")}};
  return spec;
}

TableSpec const& spans_table() {
  static TableSpec const spec{
      "/spans",
      {integer("name_id", "1", "row of /names"),
       integer("lane", "1", "0 compute, 1 comm, 2 loader"), integer("t_begin_ns", "ns", "begin"),
       integer("t_end_ns", "ns", "end"), integer("step", "1", "global step"),
       integer("bytes", "B", "bytes sent by this rank"),
       integer("peer", "1", "other rank, -1 for none")}};
  return spec;
}

TableSpec const& ps_table() {
  static TableSpec const spec{
      "/ps",
      {integer("worker", "1", "whose push the server treats; -1 all workers' in one update"),
       integer("step", "1", "global step of its samples"),
       integer("first_slot", "1", "place of its first sample in the global batch"),
       integer("chunk", "1",
               "whose versions these are, in the order of the gradients; -1 all of the server's"),
       integer("base_version", "1", "version of the parameters it was computed with"),
       integer("applied_version", "1", "first version of the parameters that has it"),
       integer("lag", "1", "updates since the base version, without its own"),
       real("gap", "1", "root mean square of the parameters' change since the base version"),
       real("weight", "1", "factor of the gradient by the policy"),
       real("factor", "1", "factor beside it: takes means, undoes the loss scale, clips"),
       real("loss_scale", "1", "factor of the loss it was computed from"),
       real("lr", "1", "learning rate"),
       integer("dropped", "1", "1 for a push that was not applied"),
       integer("overflowed", "1", "1 for one dropped because its scaled gradients overflowed"),
       integer("pulled", "1", "1 where parameters came back for it"),
       integer("queue_depth", "1", "pushes under way, this one included"),
       integer("t_ready_ns", "ns", "monotonic time when it was announced"),
       integer("t_seen_ns", "ns", "monotonic time when all of it had come"),
       integer("t_applied_ns", "ns", "monotonic time when it was applied"),
       integer("dur_busy_ns", "ns", "time the server computed for it"),
       integer("bytes", "B", "bytes received")}};
  return spec;
}

TableSpec const& memory_table() {
  static TableSpec const spec{
      "/memory",
      {integer("t_ns", "ns", "monotonic time"), integer("allocated_B", "B", "live tensor bytes"),
       real("reserved_B", "B", "bytes the allocator holds from the system"),
       integer("rss_B", "B", "resident set of the process")}};
  return spec;
}

TableSpec const& memory_breakdown_table() {
  static TableSpec const spec{
      "/memory/breakdown",
      {integer("t_ns", "ns", "monotonic time"),
       integer("parameters", "B", "parameters and their compute copies"),
       integer("gradients", "B", "gradient buffers"), integer("optimizer", "B", "optimizer state"),
       integer("buffers", "B", "model buffers such as running statistics"),
       integer("activations", "B", "kept between forward and backward"),
       integer("workspace", "B", "data set, batches, scratch and gradients of activations")}};
  return spec;
}

TableSpec const& device_table() {
  static TableSpec const spec{
      "/device",
      {integer("t_ns", "ns", "monotonic time"),
       real("utilization", "1", "busy share of the GPU; on a CPU, cores in use"),
       real("memory_used_B", "B", "device memory in use; on a CPU, resident set"),
       real("power_W", "W", "power"), real("energy_mJ", "mJ", "energy since the driver was loaded"),
       real("clock_MHz", "MHz", "SM clock")}};
  return spec;
}

TableSpec const& events_table() {
  static TableSpec const spec{"/events",
                              {integer("t_ns", "ns", "monotonic time"),
                               integer("severity", "1", "0 info, 1 warning, 2 error"),
                               integer("name_id", "1", "kind, row of /names"),
                               integer("text_id", "1", "text, row of /names")}};
  return spec;
}

std::vector<TableSpec> const& tables() {
  static std::vector<TableSpec> const all{status_table(), clock_table(),  names_table(),
                                          steps_table(),  epochs_table(), ps_table(),
                                          spans_table(),  memory_table(), memory_breakdown_table(),
                                          device_table(), events_table()};
  return all;
}

}  // namespace stratagem::trace
