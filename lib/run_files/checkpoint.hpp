#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/console/log.hpp"
#include "model/safetensors.hpp"
#include "model/weights.hpp"
#include "run_files/record.hpp"
#include "strategy/state/named_tensors.hpp"

namespace stratagem {

/// Running statistics by name and worker, averaged over the workers.
TensorMap average(std::map<std::string, std::map<int, at::Tensor>> const& buffers);

/// A saved state of a training, in a folder of its own: manifest.json and one safetensors file per
/// rank that saved something.
class Checkpoint {
 public:
  /// Reads its record alone. Error(checkpoint).
  explicit Checkpoint(std::filesystem::path folder);

  std::filesystem::path const& folder() const { return folder_; }
  CheckpointRecord const& record() const { return record_; }

  /// Hands out all tensors, one at a time, on the CPU. Error(checkpoint) naming file and tensor
  /// where something is missing, too much, or not as it was written.
  using Visit = std::function<void(StateName const&, at::Tensor const&)>;
  void read(Visit const& visit) const;

  /// Parameters, and the running statistics averaged over workers, by torchvision's names.
  TensorMap weights() const;
  /// Of the parameters among these: what outcome.json says of a run that ended here.
  std::string digest_of(TensorMap const& weights) const;

 private:
  void read(CheckpointFile const& file, Visit const& visit) const;

  std::filesystem::path folder_;
  CheckpointRecord record_;
};

/// Writes them to the disk, as safetensors, and reads them back. Error(io), also when they are not
/// what was written.
CheckpointFile save_tensors(std::filesystem::path const& path, NamedTensors const& tensors);

/// Where a run keeps its checkpoints.
std::filesystem::path checkpoint_folder(std::filesystem::path const& run_directory);
/// What a checkpoint of a step is called there.
std::string checkpoint_name(std::int64_t step);
/// All of a run's that were committed, the newest first; read or not.
std::vector<std::filesystem::path> checkpoints_of(std::filesystem::path const& run_directory);

/// The newest that is whole, every byte read; damaged ones before it are warned of. Nothing when
/// there is none at all. Error(checkpoint) when all there are are damaged.
std::optional<Checkpoint> newest_checkpoint(std::filesystem::path const& run_directory, Log& log);

/// Says so where a run went on after this checkpoint, of which its result is not.
void warn_of_later_steps(std::filesystem::path const& run_directory, Checkpoint const& checkpoint,
                         Log& log);

/// Moves aside those that were passed over for `taken`, all of them of later steps: the attempt
/// that resumes from there saves its own. Error(io).
void set_aside_after(Checkpoint const& taken, Log& log);

}  // namespace stratagem
