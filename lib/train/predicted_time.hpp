#pragma once

#include <string>

namespace stratagem {

/// Where the time of one step will go.
struct StepTime {
  double compute_s = 0;  ///< a worker's passes and its part of the update
  double exposed_s = 0;  ///< waits for communication that computation does not hide
  double cores_s = 0;    ///< waits for cores that the other ranks of the node, and messages, need

  double total() const { return compute_s + exposed_s + cores_s; }
};

/// How long a run will take on a machine that was measured.
struct PredictedTime {
  StepTime step;          ///< one global batch
  double epoch_s = 0;     ///< training alone, after a warm start
  double run_s = 0;       ///< with evaluations; at most run.max_time_s of training
  double save_s = 0;      ///< a checkpoint; 0 where that is not known
  std::string published;  ///< whose figures it is from; empty where the machine was measured

  /// What to ask a scheduler for: a quarter more, with five minutes to start and to end, in whole
  /// minutes: "01:05:00".
  std::string request() const;

  /// How long before its end a job has to be told to save, in whole tens of seconds: up to two
  /// steps go by before it does; twice that and the saving, and a minute for launcher and
  /// scheduler.
  int lead_s() const;
};

}  // namespace stratagem
