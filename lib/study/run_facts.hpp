#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stratagem {

/// Facts from the manifest of a run that its traces do not contain.
struct RunFacts {
  std::string commit;             ///< of the program, followed by "+" if it had local changes
  std::int64_t train_images = 0;  ///< of the data set
  std::int64_t global_batch = 0;  ///< samples of a step, of all workers
};

/// Unknown facts are empty, or 0.
RunFacts read_run_facts(std::filesystem::path const& run);

}  // namespace stratagem
