#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "run_files/training_progress.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// Where a tensor of a training's state belongs. In files: "<kind>/<name>", as "parameters/<name>",
/// or, of what a worker has of its own, "<kind>/<worker>/<name>".
struct StateName {
  static constexpr char const* buffers =
      "buffers";  ///< running statistics: each worker has its own

  std::string kind;                          ///< `buffers`, or of State::of_parameters
  std::string tensor;                        ///< torchvision's name
  int worker = ParameterState::all_workers;  ///< whose own it is, or that of all

  bool is_own() const { return worker != ParameterState::all_workers; }
  std::string text() const;
  /// Error(checkpoint) for a text of another form.
  static StateName parse(std::string const& text);
};

/// What is known of one tensor beside its values.
struct TensorRecord {
  std::string type;  ///< as LibTorch names it
  std::vector<std::int64_t> shape;
  std::string digest;  ///< of name, type, shape and bytes
};
TensorRecord describe(std::string const& name, at::Tensor const& tensor);

/// One rank's file of a checkpoint.
struct CheckpointFile {
  std::string name;
  std::int64_t bytes = 0;
  std::map<std::string, TensorRecord> tensors;  ///< by StateName::text()
};

/// What manifest.json of a checkpoint says.
struct CheckpointRecord {
  static constexpr int schema = 1;

  TrainingProgress position;
  std::int64_t saved_wall_ns = 0;
  int workers = 1;
  std::map<std::string, std::string> facts;  ///< on which the numbers of a training depend
  std::map<std::string, double> counters;    ///< of the strategy
  std::vector<CheckpointFile> files;

  std::int64_t bytes() const;
};

std::string to_json(CheckpointFile const& file);
CheckpointFile checkpoint_file_from(std::string const& json);

/// With a digest of itself.
std::string to_json(CheckpointRecord const& record);
/// Error(checkpoint) saying what is wrong with the file: damaged, or of a newer schema.
CheckpointRecord read_checkpoint_record(std::filesystem::path const& path);

}  // namespace stratagem
