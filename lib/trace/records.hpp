#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "gpu/memory.hpp"
#include "gpu/telemetry.hpp"
#include "trace/phase.hpp"

namespace stratagem::trace {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Index into the table of names.
using NameId = std::int32_t;

/// Times are nanoseconds of this rank's monotonic clock.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t t_begin = 0;
  std::array<std::int64_t, phases> durations{};  ///< by Phase
  std::int64_t duration = 0;                     ///< of the whole step
  double loss = unknown;                         ///< mean over the global batch
  std::int64_t samples = 0;                      ///< of this rank
  double lr = unknown;
};

struct EpochRecord {
  std::int64_t epoch = 0;
  double time_s = unknown;  ///< training only, without evaluation
  double train_loss = unknown;
  double train_accuracy = unknown;
  double test_loss = unknown;
  double test_accuracy = unknown;
  double images_per_s = unknown;  ///< of all ranks together
  std::int64_t comm_bytes = 0;    ///< sent by this rank
  std::int64_t mem_peak_allocated = 0;
  double mem_peak_reserved = unknown;
  double energy_J = unknown;
};

struct SpanRecord {
  NameId name = 0;
  Lane lane = Lane::compute;
  std::int64_t t_begin = 0;
  std::int64_t t_end = 0;
  std::int64_t step = 0;
  std::int64_t bytes = 0;  ///< sent by this rank, for communication
  std::int64_t peer = -1;  ///< for point-to-point
};

/// How a server handled one push; one chunk of a push, if each chunk has its own version; or, in
/// sync, the pushes of all workers to one update.
struct PsRecord {
  std::int64_t worker = -1;  ///< -1: all
  std::int64_t step = 0;
  std::int64_t first_slot = 0;       ///< of its samples in the global batch
  std::int64_t chunk = -1;           ///< if chunks have their own versions; -1: all of the server's
  std::int64_t base_version = 0;     ///< of the parameters that the gradient was computed with
  std::int64_t applied_version = 0;  ///< of the parameters after the update
  std::int64_t lag = 0;              ///< number of updates between the two, without its own
  double gap = 0;                    ///< root mean square of the parameters' change meanwhile
  double weight = 1;                 ///< from the policy
  double factor = 1;                 ///< other factors of the gradient: means, loss scale, clipping
  double loss_scale = 1;             ///< that the gradient was computed with
  double lr = unknown;
  bool dropped = false;
  bool overflowed = false;       ///< the reason why it was dropped
  bool pulled = true;            ///< the worker received parameters afterwards
  std::int64_t queue_depth = 0;  ///< pushes in flight, including this one
  std::int64_t t_ready = 0;      ///< when it was announced
  std::int64_t t_seen = 0;       ///< when all of it had arrived
  std::int64_t t_applied = 0;
  std::int64_t busy = 0;  ///< computing time of the server for it [ns]
  std::int64_t bytes = 0;
};

struct MemoryRecord {
  std::int64_t t = 0;
  gpu::MemoryUse use;
  double reserved = unknown;
  std::int64_t rss = 0;
};

struct DeviceRecord {
  std::int64_t t = 0;
  gpu::DeviceSample sample;
};

enum class Severity { info, warning, error };

struct EventRecord {
  std::int64_t t = 0;
  Severity severity = Severity::info;
  NameId name = 0;
  NameId text = 0;
};

}  // namespace stratagem::trace
