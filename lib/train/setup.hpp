#pragma once

#include <string>

#include "base/console/log.hpp"
#include "comm/process_info.hpp"
#include "data/dataset.hpp"
#include "model/safetensors.hpp"
#include "mpi/comm.hpp"
#include "plan/run_plan.hpp"

namespace stratagem {

/// Everything that is known of a run before it writes anything.
struct Setup {
  ProcessInfo process;
  int threads;  ///< of LibTorch, per rank; already set
  Model model;
  Dataset dataset;
  TensorMap weights;           ///< of model.weights or model.file; empty where none is named
  std::string weights_digest;  ///< of these, or "from the seed"
  RunPlan plan;
  bool graph = false;  ///< a GPU keeps the work of steps
};

/// Chooses device and threads, reads data and weights, makes the plan. Whatever does not fit, on
/// any rank, is an AgreedError. Collective over `world`.
Setup set_up(RunConfig const& config, mpi::Comm const& world, Log& log);

}  // namespace stratagem
