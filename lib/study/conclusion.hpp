#pragma once

#include <string>
#include <vector>

#include "study/run_summary.hpp"

namespace stratagem {

/// A run of a comparison, with the facts that a conclusion needs.
struct ComparedRun {
  RunSummary summary;
  std::string digest;        ///< of the final parameters
  double epochs_differ = 0;  ///< largest relative difference in speed between two epochs
};

/// 1 - slowest / fastest epoch, in images/s; 0 if there are fewer than two.
double difference_of_epochs(trace::RunTraces const& traces);

/// What the runs of one model on the same batches show, one line per fact: the fastest and by how
/// much; which differences may be chance; the least memory, and why a sharded run may need more;
/// and which runs ended with the same parameters. Everything follows from `runs`; empty for fewer
/// than two.
std::vector<std::string> conclusions(std::vector<ComparedRun> const& runs);

}  // namespace stratagem
