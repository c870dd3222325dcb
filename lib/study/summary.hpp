#pragma once

#include <array>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/table.hpp"
#include "gpu/memory.hpp"
#include "trace/collect.hpp"

namespace stratagem {

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
};

/// `name` is what the table calls the run.
RunSummary summarise(std::string const& name, trace::RunTraces const& traces);

/// Accuracy, time, throughput, exposed communication and peak memory, a row per run.
Table summary_table(std::vector<RunSummary> const& runs);
/// The same in two tables that fit a terminal: results, and peak memory by category.
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
