#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stratagem {

/// What the manifest of a run tells that its traces do not.
struct RunFacts {
  std::string commit;             ///< of the program, "+" behind it where it had been changed
  std::int64_t train_images = 0;  ///< of the data set
  std::int64_t global_batch = 0;  ///< samples of a step, of all workers
};

/// What is not known stays empty, or 0.
RunFacts read_run_facts(std::filesystem::path const& run);

}  // namespace stratagem
