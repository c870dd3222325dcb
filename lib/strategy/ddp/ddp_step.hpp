#pragma once

#include "strategy/ddp/ddp_plan.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {

/// A step of DDP on lanes, in the order of DataParallelWorker and Replicated: a bucket's all-reduce
/// begins when its first block is back and the bucket before has been reduced; then each bucket is
/// awaited and updated. Where gradients travel in a code, a bucket is coded instead, by the one
/// thread that also computes, and sent. Of blocks, what has arrived is added up between two passes.
void run_step(DdpPlan const& plan, StepParts const& parts, Lanes& lanes);

}  // namespace stratagem
