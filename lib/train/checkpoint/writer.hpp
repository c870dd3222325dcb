#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include "base/console/log.hpp"
#include "base/error.hpp"
#include "base/failpoint.hpp"
#include "comm/communicator.hpp"
#include "model/model.hpp"
#include "plan/checkpoint_config.hpp"
#include "run_files/record.hpp"
#include "strategy/strategy.hpp"

namespace stratagem {

/// Which rank saves which whole tensor of the model: about as many bytes each.
std::map<std::string, int> deal_tensors(Model const& model, std::span<int const> ranks);

/// Saves the states of a run while it trains. Every rank copies the tensors dealt to it, and a
/// thread beside the training writes them to a file of its own, which counts when its bytes were
/// read back right and the rank's trace reaches as far. Rank 0 commits the checkpoint when all
/// files count, by renaming its folder: before that the older ones stay, whatever happens. A
/// checkpoint that fails is warned of, and the training continues.
class CheckpointWriter {
 public:
  /// What it is made of; the references outlive it.
  struct Parts {
    CheckpointConfig config;
    std::filesystem::path run_directory;
    std::optional<std::filesystem::path> began_from = {};  ///< the checkpoint, which is whole
    int attempt = 0;
    Model const& model;
    int workers = 1;
    std::map<std::string, int> dealt;          ///< deal_tensors()
    std::map<std::string, std::string> facts;  ///< training_facts()
    Communicator& communicator;
    Log& log;
    Failpoints failpoints;
    /// Makes what was recorded of the steps so far outlive the process; on the thread.
    std::function<void()> keep_trace = [] {};
    /// A checkpoint is whole; on rank 0, on the thread.
    std::function<void(std::int64_t step)> committed = [](std::int64_t) {};
  };

  /// On rank 0 also removes what an attempt that was killed left half written.
  explicit CheckpointWriter(Parts parts);
  ~CheckpointWriter();
  CheckpointWriter(CheckpointWriter const&) = delete;
  CheckpointWriter& operator=(CheckpointWriter const&) = delete;

  /// True on rank 0 when it is time for one more.
  bool due() const;
  /// One is due as soon as can be, whatever the time; any thread may say so.
  void hasten() { hastened_ = true; }

  /// Between two steps. Waits until the one before is written, copies the state, and returns what
  /// is to be told of it. Collective.
  std::string save(TrainingProgress const& position, Participant& participant);

  /// Waits until all is written; what kept the last one from being committed. Collective, with the
  /// same result on every rank.
  std::optional<Error> finish();

  /// What the thread has to tell since the last call, on rank 0.
  std::optional<std::string> news();

 private:
  struct Job {
    std::filesystem::path folder;  ///< temporary
    CheckpointRecord record;       ///< but for its files
    NamedTensors tensors;          ///< of this rank, by StateName::text()
    double blocked_s = 0;
    std::int64_t began_ns = 0;
  };

  bool leads() const { return parts_.communicator.rank() == 0; }
  NamedTensors stage(State const& state) const;
  /// Collective; false, and warned of, when it cannot be made.
  bool make_folder(std::filesystem::path const& folder);
  void lengthen_interval(double blocked_s);

  // On the thread.
  void write(Job const& job, std::stop_token const& stop);
  CheckpointFile write_own_file(Job const& job) const;
  /// Waits for the files of all ranks.
  void commit(Job const& job, std::stop_token const& stop);
  /// Every rank said that it wrote its part, so long ago that it would be seen by now.
  bool is_lost() const;
  /// So many as are to be kept stay of those that are known to be whole, with what is newer.
  void remove_old() const;
  void tell(std::string const& text);

  Parts parts_;
  double interval_s_;  ///< 0: does not go by time
  std::int64_t last_ns_;
  std::atomic<bool> own_written_ = true, busy_ = false, hastened_ = false;
  std::atomic<std::int64_t> all_written_ns_ = 0;  ///< when rank 0 heard it of all; 0: not yet
  std::set<std::filesystem::path> whole_;         ///< on rank 0: read and found right; the thread's
  std::int64_t told_ns_ = 0;      ///< of the last that people were told of; the thread's
  std::optional<Error> problem_;  ///< of the last one; the thread's until it was joined
  std::mutex mutex_;
  std::optional<std::string> news_;  ///< under mutex_
  std::jthread thread_;
};

}  // namespace stratagem
