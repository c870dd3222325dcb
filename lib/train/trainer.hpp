#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "comm/communicator.hpp"
#include "data/loader.hpp"
#include "gpu/telemetry.hpp"
#include "optim/schedule.hpp"
#include "strategy/strategy.hpp"
#include "train/evaluation.hpp"
#include "train/metrics.hpp"
#include "train/progress_display.hpp"
#include "train/run_plan.hpp"

namespace stratagem {

/// How a training ended.
struct TrainResult {
  std::string reason;  ///< "epochs done", "max_steps" or "time_limit"
  std::int64_t steps = 0;
  double train_time_s = 0;  ///< without evaluation
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
  Strategy& strategy;
  Communicator& communicator;
  trace::Recorder& recorder;
  gpu::Device device;
  Log& log;
  ProgressDisplay* display = nullptr;  ///< on rank 0
  Metrics* metrics = nullptr;          ///< on rank 0
};

/// The loop: batch, step, record; evaluate after epochs; stop in time. Runs on every rank alike.
class Trainer {
 public:
  explicit Trainer(TrainerParts const& parts);

  TrainResult run();

 private:
  /// Sums over the steps of an epoch.
  struct EpochSums {
    double loss = 0;
    std::int64_t correct = 0, samples = 0, steps = 0;
    bool stop = false;
    std::int64_t began_ns = 0, bytes_before = 0;
    double energy_before = std::numeric_limits<double>::quiet_NaN();
  };

  EpochSums begin_epoch();
  /// False when there is nothing left for this rank before step `end`.
  bool step(Loader& loader, std::int64_t end, EpochSums& sums);
  std::optional<Batch> next_batch(Loader& loader, std::int64_t end);
  /// Where ranks see different steps or none: makes sums those of all of them.
  void join(EpochSums& sums, std::int64_t first_step);
  void end_epoch(EpochSums const& sums, double time_s, bool evaluate);
  void evaluate_now();
  void write_metrics(trace::EpochRecord const& epoch);
  bool out_of_time() const;

  TrainerParts parts_;
  Schedule schedule_;
  BatchMaker evaluation_maker_;
  std::unique_ptr<gpu::Telemetry> telemetry_;
  std::int64_t started_ns_;
  std::int64_t step_ = 0, epoch_ = 0;
  std::int64_t own_steps_ = 0;  ///< that this rank has made
  TrainResult result_;
};

/// What the model of a plan wants its images to be.
InputFormat input_format(RunPlan const& plan, Model const& model, gpu::Device const& device);

}  // namespace stratagem
