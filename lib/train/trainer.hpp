#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/console/log.hpp"
#include "base/console/progress_display.hpp"
#include "base/failpoint.hpp"
#include "comm/communicator.hpp"
#include "data/loader.hpp"
#include "gpu/telemetry.hpp"
#include "optim/schedule.hpp"
#include "plan/run_plan.hpp"
#include "run_files/metrics.hpp"
#include "run_files/training_progress.hpp"
#include "strategy/round.hpp"
#include "train/checkpoint/writer.hpp"
#include "train/evaluation.hpp"
#include "train/reached.hpp"
#include "train/signal_watch.hpp"

namespace stratagem {

/// How a training ended.
struct TrainResult {
  std::string reason;        ///< "epochs done", "max_steps", "time_limit" or "interrupted"
  bool interrupted = false;  ///< before its end, and saved
  bool saved = false;  ///< so is its end; CheckpointWriter::finish() tells whether it could be
  std::int64_t steps = 0;
  double train_time_s = 0;  ///< without evaluation and saving
  double wall_time_s = 0;   ///< with them
  double train_loss =
      std::numeric_limits<double>::quiet_NaN();  ///< of the last epoch, as far as it went
  Evaluation last{.loss = std::numeric_limits<double>::quiet_NaN(),
                  .accuracy = std::numeric_limits<double>::quiet_NaN()};
};

/// What a trainer works with; all outlive it.
struct TrainerParts {
  RunPlan const& plan;
  InputFormat format;
  Dataset const& dataset;
  Member const& member;
  World& world;
  trace::Recorder& recorder;
  gpu::Device device;
  Log& log;
  SignalWatch const& signals;
  CheckpointWriter& checkpoints;
  Failpoints const& failpoints;
  Reached& reached;
  ProgressDisplay* display = nullptr;  ///< on rank 0
  Metrics* metrics = nullptr;          ///< on rank 0
};

/// The loop: batch, step, record; evaluate after epochs; save; stop in time. Runs on every rank
/// alike. Training goes in rounds, stretches of steps of one epoch, between which all ranks meet.
class Trainer {
 public:
  /// The member has the state of `start`.
  Trainer(TrainerParts const& parts, TrainingProgress const& start);

  TrainResult run();

 private:
  std::optional<Loader> make_loader() const;
  /// Up to the end of the epoch, or until some rank has a request.
  Requests train_round(std::optional<Loader>& loader);
  /// Where the round ends if nobody wants anything.
  std::int64_t end_of_round() const;
  /// What a step is told; `Phase::data` has ended.
  StepOptions options_of(Batch const& batch) const;
  /// Adds a step to `sums`; false when it has a request.
  bool note(Batch const& batch, StepResult const& result, EpochSums& sums);
  /// A bit of what other ranks hold too becomes another, where a test wants it.
  void corrupt(std::int64_t step) const;
  /// Where ranks see different steps or none: makes sums and requests those of all.
  /// `discarded`: pushes in these sums, see Server::discarded().
  void join(EpochSums& sums, double discarded, Requests& requests) const;
  /// By this rank so far.
  double discarded() const;
  /// False, and the epoch is as it was, when its evaluation was given up.
  bool end_epoch(bool last);
  /// False when a signal came before it was over.
  bool evaluate_now();
  void save_and_stop();
  /// `reached`: the position before its epoch was ended for there is no further step. A longer run
  /// goes on from there as one that never stopped, and one that is killed now ends as it should.
  void save_end(TrainingProgress const& reached);
  /// How it ended.
  void conclude();
  void write_metrics(trace::EpochRecord const& epoch);
  /// Error(diverged), on all ranks, when what they hold alike differs: nothing is saved then.
  void require_equal_replicas() const;
  void save(TrainingProgress position);
  /// Of this attempt and those it goes on from: training, evaluation and saving.
  double wall_time_s() const;
  /// Of this rank, during a round.
  Requests own_requests() const;

  TrainerParts parts_;
  Schedule schedule_;
  BatchMaker evaluation_maker_;
  std::unique_ptr<gpu::Telemetry> telemetry_;
  std::int64_t started_ns_;
  double wall_time_before_s_;  ///< of earlier attempts
  std::int64_t began_after_;   ///< the step of the checkpoint that it began with; 0: none
  std::int64_t round_began_ns_ = 0;
  TrainingProgress position_;
  std::int64_t own_steps_;        ///< that this rank has made
  std::int64_t round_steps_ = 0;  ///< of these in this round
  double applied_share_ = 1;      ///< of the samples of the last round
  TrainResult result_;
};

}  // namespace stratagem
