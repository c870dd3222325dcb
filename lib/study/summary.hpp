#pragma once

#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/table.hpp"
#include "gpu/memory.hpp"
#include "strategy/ps/lag_counts.hpp"
#include "trace/collect.hpp"

namespace stratagem {

/// What the servers of a run did.
struct ServerSummary {
  std::int64_t updates = 0;  ///< versions of the parameters, of the server that made most
  std::int64_t pushes = 0;   ///< of all workers to all servers, by chunk where each has versions of
                             ///< its own; one per update in sync
  std::int64_t pulls = 0;    ///< that came back for them
  std::int64_t dropped = 0;  ///< of these
  std::int64_t overflowed = 0;  ///< of those dropped: under the loss scale
  LagCounts lags;               ///< of these
  double queue_depth = 0;       ///< mean number of pushes under way when one was treated
  double busy_share = 0;        ///< of training time that servers computed, mean over servers
};

/// One run in numbers, all from its traces; NaN where a number is not known.
struct RunSummary {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  std::string name;
  std::string strategy, model, dataset;
  int ranks = 0;
  std::string status;  ///< "complete", "running or killed", ...
  std::int64_t steps = 0;
  double train_time_s = unknown;   ///< sum over epochs, evaluation apart; the slowest rank's
  double images_per_s = unknown;   ///< of all ranks, over all epochs
  double step_ms = unknown;        ///< median over steps and ranks
  double exposed_share = unknown;  ///< of step time that waits for communication, over all ranks
  double train_loss = unknown, test_accuracy = unknown;  ///< last known
  gpu::MemoryUse peak;                                   ///< of the rank that needed most
  std::optional<ServerSummary> servers;                  ///< of a run that had some
};

/// `name` is what the table calls the run.
RunSummary summarise(std::string const& name, trace::RunTraces const& traces);

/// Accuracy, time, throughput, exposed communication, peak memory and what servers did, a row per
/// run.
Table summary_table(std::vector<RunSummary> const& runs);
/// The same in tables that fit a terminal: results, peak memory by category, and servers where some
/// run had any.
std::string summary_text(std::vector<RunSummary> const& runs);
std::string summary_json(std::vector<RunSummary> const& runs);

/// Where a step's time goes: mean milliseconds of each phase, a row per run and rank.
class PhaseTable {
 public:
  PhaseTable();
  void add(std::string const& name, trace::RunTraces const& traces);
  std::string render() const { return table_.render(); }

 private:
  Table table_;
};

}  // namespace stratagem
