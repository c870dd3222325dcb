#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/memory.hpp"
#include "study/run_facts.hpp"
#include "trace/collect.hpp"
#include "trace/lag_counts.hpp"
#include "trace/phase.hpp"
#include "trace/records.hpp"

namespace stratagem {

/// What the servers of a run did, all of them together.
struct ServerSummary {
  std::int64_t updates = 0;  ///< versions of the parameters, of the server that made most
  std::int64_t pushes = 0;   ///< of all workers to all servers, by chunk where each has versions of
                             ///< its own; one per update in sync
  std::int64_t pulls = 0;    ///< that came back for them
  std::int64_t dropped = 0;  ///< pushes that were not applied
  std::int64_t overflowed = 0;  ///< of those dropped: under the loss scale
  std::int64_t bytes = 0;       ///< received
  LagCounts lags;               ///< of all pushes, those that were dropped included
  double queue_depth = 0;       ///< mean number of pushes under way when one was treated
  double busy_s = 0;            ///< sum of the time that servers computed
  double busy_share = 0;        ///< of training time that servers computed, mean over servers
};

/// What is known at the end of an epoch.
struct CurvePoint {
  std::int64_t epoch = 0;          ///< from 0
  double time_s = trace::unknown;  ///< training time so far, evaluation apart; of rank 0
  double train_loss = trace::unknown, test_accuracy = trace::unknown;
};

/// One run in numbers, all from its traces; NaN where a number is not known. A worker is a rank
/// that made steps, a server one that updated parameters and made none.
struct RunSummary {
  static constexpr double unknown = trace::unknown;

  std::string name;
  std::string strategy, model, dataset;
  int ranks = 0;
  std::string status;              ///< "complete", "running or killed", ...
  std::int64_t steps = 0;          ///< that all workers made together
  double train_time_s = unknown;   ///< sum over epochs, evaluation apart; the slowest rank's
  double images_per_s = unknown;   ///< of all ranks, over all epochs
  double step_ms = unknown;        ///< median over steps and ranks
  double exposed_share = unknown;  ///< of step time that waits for communication, over all ranks
  double train_loss = unknown, test_accuracy = unknown;  ///< last known
  gpu::MemoryUse peak;                                   ///< of the rank that needed most
  std::optional<ServerSummary> servers;                  ///< of a run that had some

  double steady_images_per_s = unknown;  ///< of all workers, from their median steps but the first
  double steady_step_s = unknown;        ///< of a global batch at that rate
  double epoch_s = unknown;              ///< of all training images at that rate
  double overlap_share = unknown;        ///< see overlap_share()
  /// Means over steps and ranks.
  std::array<double, trace::phases> phase_ms{unknown, unknown, unknown, unknown, unknown};
  double first_epoch_accuracy = unknown;
  double comm_bytes = unknown;  ///< sent by a worker over all epochs, mean over workers
  std::vector<CurvePoint> curve;

  gpu::MemoryUse worker_peak, server_peak;  ///< of the worker, and server, that needed most
  double worker_data_bytes = unknown;       ///< of images and batches in worker_peak's workspace
  double total_peak_bytes = unknown;        ///< sum of every rank's peak
  double reserved_bytes = unknown;          ///< that an allocator held, most of any worker
  double device_used_bytes = unknown;       ///< as the device tells, most of any worker
  double utilization = unknown;             ///< of the devices while training, mean over workers
  double utilization_sd = unknown;          ///< over the samples of a worker, mean over workers
  double energy_J = unknown;                ///< of the devices of all workers, training epochs
};

/// `name` is what tables call the run.
RunSummary summarise(std::string const& name, trace::RunTraces const& traces,
                     RunFacts const& facts = {});

}  // namespace stratagem
