#pragma once

#include "model/model.hpp"
#include "plan/run_plan.hpp"
#include "predict/calibration.hpp"
#include "predict/time/step_costs.hpp"

namespace stratagem {

// The time of a step, predicted from a plan and what was measured of a machine.
//
// One worker is followed through a step that is like the one before. It computes on one lane and
// communicates on another, in the order in which its strategy's step() does:
//
//   serial   workers x micro-batches x (F + B) + O
//   ddp      F + B, a bucket's all-reduce begins when its first block is back and the bucket before
//            has been reduced; then each bucket is awaited and updated
//   fsdp     gathers go ahead of the blocks as far as the plan says; each unit's reduce-scatter
//            begins when its blocks are back, and is awaited before its shard is updated
//   ps       a chunk is pushed when its blocks are back, and awaited by the first block that needs
//            it, in the next forward pass or `delay` passes later; sync servers serve a chunk when
//            it has come from all workers, others all chunks of a worker when they have come
//
// with F, B a pass forward and backward, O an update of all parameters (FSDP: of a rank's share,
// servers: in the time of a push). The lanes' longer one is the step, but on a CPU, where messages
// and sums are the work of cores too, no step ends before all ranks of a node have had their cores:
//
//   step = max(lanes, [awake x threads x (F + B + O) + communication + serving] / cores)
//
// where awake are the workers and, as they look for messages all the time, asynchronous servers;
// and no server can do more than serve the pushes of all workers in a step. What is assumed:
//   - every block takes an equal part of F and of B, every parameter an equal part of O;
//   - passes take what they took when as many ranks of the node computed at once as are awake, or
//     as its cores allow;
//   - a collective takes what it takes alone, on its own lane, one after the other; among another
//     number of ranks than was measured it goes with the bytes over each rank's link;
//   - all ranks are alike and there at once: nobody is slow, and batches are ready in time;
//   - an update without gradients (control record, norm of gradients) takes nothing.

/// A pure function. `model` is that of the plan.
StepTime predict_step(RunPlan const& plan, Model const& model, StepCosts const& costs);

/// How far the ratio of two predicted steps may be off, of strategies that train alike, in one cell
/// on CPUs [fraction]: nine of ten recorded ones were off by no more
/// (analysis/bench/STEP_TIME.md). Short steps depend on when threads wake up.
double ratio_error(double step_s);
inline constexpr double short_step_s = 0.020;

}  // namespace stratagem
