#pragma once

#include "model/model.hpp"
#include "train/calibration.hpp"
#include "train/curve.hpp"
#include "train/run_plan.hpp"

namespace stratagem {

/// What a step of one plan is made of, on one machine.
struct StepCosts {
  double forward_s = 0, backward_s = 0;          ///< of one pass of a worker
  double optimizer_s = 0;                        ///< an update of all parameters
  Curve all_reduce, reduce_scatter, all_gather;  ///< among all ranks, over bytes
  Curve message;                                 ///< from one rank to another, over bytes
  Curve push;     ///< served by a server, with its side of the messages, over elements
  int cores = 0;  ///< of a node; 0 where ranks compute on GPUs and need few
  int threads = 1;
  int ranks_on_node = 1;
};

/// Ranks that want a core all the time: workers, and asynchronous servers, which look for messages.
int awake_ranks(StrategyPlan const& plan);

/// From what was measured of passes like the plan's. Error(usage) naming what was not measured, and
/// what was.
StepCosts step_costs(RunPlan const& plan, Model const& model, Calibration const& calibration);

}  // namespace stratagem
