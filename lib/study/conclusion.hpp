#pragma once

#include <string>
#include <vector>

#include "study/run_summary.hpp"

namespace stratagem {

/// A run of a comparison, with the facts that a conclusion needs.
struct ComparedRun {
  RunSummary summary;
  std::string digest;     ///< of the final parameters
  std::string of;         ///< what is repeated: runs with the same name here differ by chance alone
  double core_share = 1;  ///< Outcome::core_share
};

/// What the runs of one model on the same batches show, one line per fact: the fastest and what is
/// not told apart from it; by how much repetitions differ; whether something else used the cores;
/// the least memory, and why a sharded run may need more; and which runs ended with the same
/// parameters. Everything follows from `runs`, where whole rounds follow each other: each compared
/// thing once in each, in the same order. Empty for fewer than two things.
std::vector<std::string> conclusions(std::vector<ComparedRun> const& runs);

}  // namespace stratagem
