#pragma once

#include <string>
#include <vector>

#include "study/run_summary.hpp"

namespace stratagem {

/// A run of a comparison, as a conclusion needs it.
struct ComparedRun {
  RunSummary summary;
  std::string digest;        ///< of the parameters in the end
  double epochs_differ = 0;  ///< greatest difference of the speed of two of its epochs, as a share
};

/// 1 - slowest / fastest epoch, in images/s; 0 where there are not two.
double difference_of_epochs(trace::RunTraces const& traces);

/// What runs of the same model on the same batches say, a line each: which was fastest and by how
/// much, what of that may be chance, who held least and why a sharded run may hold more, and who
/// ended with the same parameters. All of it follows from `runs`; nothing is said of fewer than
/// two.
std::vector<std::string> conclusions(std::vector<ComparedRun> const& runs);

}  // namespace stratagem
