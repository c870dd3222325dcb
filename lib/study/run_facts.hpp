#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plan/run_config.hpp"

namespace stratagem {

/// Facts from the manifest of a run, and from its outcome, that its traces do not contain.
struct RunFacts {
  std::string problem;  ///< why the manifest could not be read; empty: it could
  std::string commit;   ///< of the program, "+" behind it where it had been changed
  /// What the user's files held, in digests, by the key that names them: data.path, model.file.
  std::map<std::string, std::string> contents;
  /// The same by what the configuration says of them, such as "data.path: photos".
  std::map<std::string, std::string> files;
  std::string labels = "images";    ///< what is counted: images, or tokens
  std::int64_t train_labels = 0;    ///< of the data set
  double bytes_per_token = 0;       ///< of text; 0: unknown
  double train_flops = 0;           ///< of a label, in 16 bit; 0: unknown, or in other types
  double peak_flops = 0;            ///< of all GPUs together, per second; 0: unknown
  std::int64_t data_bytes = -1;     ///< of the data set, in the host memory of every rank
  std::int64_t sent_per_step = -1;  ///< bytes that a worker sends in a step, as planned
  int ranks = 0;                    ///< that the run was started with
  std::int64_t global_batch = 0;    ///< samples of a step, of all workers
  double wall_time_s = 0;           ///< of training, evaluation and saving
  std::int64_t device_memory = 0;   ///< bytes of a rank's device, where all have as many
  /// By rank: bytes of the data set in the memory that its trace tells of; 0 on a GPU.
  std::vector<std::int64_t> traced_data_bytes;

  std::int64_t traced_data_bytes_of(int rank) const {
    auto const place = static_cast<std::size_t>(rank);
    return place < traced_data_bytes.size() ? traced_data_bytes[place] : 0;
  }
};

/// What is not known stays empty, or 0; of bytes, -1. Of a run that goes on, its time is not known.
RunFacts read_run_facts(std::filesystem::path const& run);
/// For people: why, and what that makes of the run's numbers.
std::string without_manifest(std::filesystem::path const& run, RunFacts const& facts);

/// The values of a printed configuration, by path, as texts.
std::map<std::string, std::string> values_in(std::string const& printed);

/// Whether a key decides what a run computes or how fast.
bool decides(std::string const& path);

/// The values of a configuration that decide what a run computes and how fast, by path, as they are
/// printed. Runs that agree in them and in their number of ranks repeat each other: they may differ
/// in seed, folders, traces, checkpoints and watching.
std::map<std::string, std::string> deciding_settings(RunConfig const& config);

}  // namespace stratagem
