#pragma once

namespace stratagem::test {

/// What the fakes of CUDA and NCCL do wrong in this process, and what was done to them. Codes are
/// values of ncclResult_t.
struct Faults {
  int nccl_start = 0;         ///< result of ncclCommInitRankConfig
  int nccl_asynchronous = 0;  ///< what ncclCommGetAsyncError reports
  bool device_hangs = false;  ///< events recorded on a stream never happen
  int late_queries = 0;  ///< of so many, each second one does not see that an event has happened
  int aborts = 0;        ///< communicators aborted so far
};

Faults& faults();

}  // namespace stratagem::test
