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

/// What all servers of a run did together.
struct ServerSummary {
  std::int64_t updates = 0;  ///< versions of the parameters, of the server, and of its chunks
                             ///< where each has its own, that made most; in all attempts
  std::int64_t pushes = 0;   ///< of all workers to all servers, by chunk where each has versions of
                             ///< its own; one per update in sync
  std::int64_t pulls = 0;    ///< that came back for them
  std::int64_t dropped = 0;  ///< pushes that were not applied
  std::int64_t overflowed = 0;  ///< dropped because they overflowed under the loss scale
  std::int64_t bytes = 0;       ///< received
  LagCounts lags;               ///< of all pushes, including dropped ones
  double queue_depth = 0;       ///< mean number of pushes in flight when one was handled
  double busy_s = 0;            ///< sum of the servers' computing time
  double busy_share = 0;  ///< share of training time in which servers computed, mean over servers
};

/// What one rank recorded.
struct RankSummary {
  int rank = 0;
  bool serves = false;              ///< it updated parameters for others, and made no steps
  std::int64_t steps = 0;           ///< that it made
  double step_ms = trace::unknown;  ///< mean
  std::array<double, trace::phases> phase_ms{};  ///< means, by Phase; NaN of no steps
  double comm_bytes = trace::unknown;            ///< sent over all epochs
  gpu::MemoryUse peak;
};

/// What is known at the end of an epoch.
struct CurvePoint {
  std::int64_t epoch = 0;          ///< from 0
  double time_s = trace::unknown;  ///< training time so far, without evaluation; of rank 0
  double train_loss = trace::unknown, test_loss = trace::unknown, test_accuracy = trace::unknown;
};

/// The numbers of one run, all from its traces; NaN if a number is unknown. A worker is a rank that
/// made steps; a server is a rank that updated parameters and made no steps.
struct RunSummary {
  static constexpr double unknown = trace::unknown;

  std::string name;
  std::string strategy, model, dataset;
  int ranks = 0;
  std::string status;                  ///< as its traces say: "complete", "running or killed", ...
  std::int64_t steps = 0;              ///< that all workers made together
  double train_time_s = unknown;       ///< sum over epochs, evaluation apart; the slowest rank's
  double wall_time_s = unknown;        ///< with evaluation and saving
  double wall_images_per_s = unknown;  ///< over that time
  double applied_share = unknown;      ///< of the images: whose gradients were applied
  double images_per_s = unknown;       ///< of all ranks, over all epochs; those that were applied;
                                       ///< of text, tokens, likewise below
  double step_ms = unknown;            ///< median over steps and ranks
  double exposed_share = unknown;      ///< of step time spent waiting for communication
  double exposed_transfer_share = unknown;  ///< of it, see trace::ExposedTime
  double exposed_waiting_share = unknown;
  double exposed_server_share = unknown;
  double compute_ratio = unknown;         ///< of the worker that computes longest, to the shortest
  double fewest_samples_share = unknown;  ///< of a worker, over an even share
  double train_loss = unknown, test_loss = unknown, test_accuracy = unknown;  ///< last known
  std::string labels = "images";   ///< what rates count: images, or tokens
  double bits_per_byte = unknown;  ///< of the test text, whose tokens stand for bytes
  double mfu = unknown;            ///< model FLOPs per second, as a share of the GPUs' peak
  gpu::MemoryUse peak;  ///< of the rank with the highest peak; all peaks leave out the data set
  std::optional<ServerSummary> servers;  ///< empty if the run had none

  double steady_images_per_s = unknown;  ///< applied, from all workers' median steps but the first
  double steady_step_s = unknown;        ///< of a global batch in these steps, applied or not
  double epoch_s = unknown;              ///< of all training images at that rate
  double overlap_share = unknown;        ///< see overlap_share()
  /// Means over steps and ranks.
  std::array<double, trace::phases> phase_ms{unknown, unknown, unknown, unknown, unknown};
  double first_epoch_accuracy = unknown;
  double sent_per_step = unknown;     ///< bytes of a worker, as planned
  double comm_bytes = unknown;        ///< sent by a worker over all epochs, mean over workers
  double total_sent_bytes = unknown;  ///< by all ranks, servers too, over all epochs
  std::vector<CurvePoint> curve;
  std::vector<RankSummary> by_rank;

  gpu::MemoryUse worker_peak, server_peak;  ///< of the worker or server with most
  double worker_batch_bytes = unknown;      ///< images of batches in worker_peak's workspace
  double total_peak_bytes = unknown;        ///< sum of every rank's peak
  double whole_peak_bytes = unknown;        ///< the highest peak with the data set, if traced
  double data_set_bytes = unknown;          ///< in every rank's host memory
  double reserved_bytes = unknown;          ///< held by an allocator; maximum over workers
  double device_used_bytes = unknown;       ///< reported by the device; maximum over workers
  double device_memory_bytes = unknown;     ///< that a device has, where all have as much
  double device_used_sd_bytes = unknown;    ///< standard deviation in time, mean over workers
  double unfilled_share = unknown;  ///< of reserved memory: above the peak of tensors; maximum
  double utilization = unknown;     ///< of the devices while training, mean over workers
  double utilization_sd = unknown;  ///< standard deviation in time, mean over workers
  double energy_J = unknown;        ///< of the workers' devices during training epochs
};

/// `name` is the name of the run in tables.
RunSummary summarise(std::string const& name, trace::RunTraces const& traces,
                     RunFacts const& facts = {});

}  // namespace stratagem
