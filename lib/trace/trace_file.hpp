#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "h5/writer.hpp"
#include "trace/recorder.hpp"
#include "trace/schema.hpp"

namespace stratagem::trace {

/// Attributes of /provenance and /process, fixed when the file is created.
struct TraceHeader {
  std::map<std::string, h5::AttributeValue> provenance;
  std::map<std::string, h5::AttributeValue> process;
};

struct ClockSample {
  std::int64_t offset_to_rank0 = 0;  ///< [ns]
  std::int64_t uncertainty = 0;      ///< [ns]
};

/// One rank's HDF5 file. A separate thread takes the recorder's rows at least once per second,
/// appends them and flushes, so that a killed rank loses at most the last second. Every fifth flush
/// goes to the disk. The first failure ends the writing, not the training.
class TraceFile {
 public:
  /// `device_sample_hz`: how often the device is sampled; 0: never. Error(io) if the file cannot be
  /// created.
  TraceFile(std::filesystem::path const& path, TraceHeader const& header, Recorder& recorder,
            ClockSample const& clock, double device_sample_hz);
  ~TraceFile();
  TraceFile(TraceFile const&) = delete;
  TraceFile& operator=(TraceFile const&) = delete;

  /// Writes the remaining rows and closes; from then on, the file is complete. Returns the error
  /// that happened now or earlier; if there is one, the trace is incomplete.
  std::optional<Error> close(Status status, ClockSample const& clock);

  /// Writes what there is now, without waiting for the second to pass: the process may not live
  /// that long.
  void write_soon();
  /// The same, and waits until it is in the file, or until nothing can be written any more.
  void write_now();

 private:
  void run(double device_sample_hz);
  void write_pending();
  void append_status(Status status);
  void append_clock(ClockSample const& clock);
  h5::TableWriter& table(h5::TableSpec const& spec);

  Recorder& recorder_;
  h5::FileWriter file_;
  std::map<std::string, h5::TableWriter> tables_;
  std::vector<DeviceRecord> device_samples_;  ///< of the writer thread, not yet written
  std::size_t names_written_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_, written_;
  bool stopping_ = false, hurried_ = false;
  std::uint64_t wanted_ = 0, done_ = 0;  ///< calls of write_now(), and how many of them were served
  std::optional<Error> failure_;         ///< owned by the writer thread until it is joined
  std::thread writer_;
};

}  // namespace stratagem::trace
