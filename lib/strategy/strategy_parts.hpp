#pragma once

#include "comm/watchdog/watchdog_config.hpp"
#include "comm/world.hpp"
#include "gpu/device.hpp"
#include "gpu/memory.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "strategy/strategy.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// What every member is made of, beside its plan. The references outlive it.
struct StrategyParts {
  Model const& model;
  World& world;
  trace::Recorder& recorder;
  gpu::Device device;
  OptimizerConfig optimizer;
  PrecisionConfig precision;
  std::uint64_t seed = 1;
  bool dropout = true;
  Recompute recompute;
  bool graph = false;  ///< keeps the work of steps as a graph, where strategy and device can
  /// By which a server finds that a worker is missing; else none ever is.
  WatchdogConfig watchdog = {.enabled = false};

  /// Of a training pass whose loss is scaled.
  Context context_of(Batch const& batch, double loss_scale) const {
    return {.training = true,
            .dropout = dropout,
            .fused = model.fused,
            .seed = seed,
            .step = batch.step,
            .first_slot = batch.first_slot,
            .loss_scale = loss_scale};
  }
  /// Of evaluation.
  Context evaluation() const { return {.fused = model.fused}; }
  /// Zeroed memory for so many elements of the master type, which the communicator moves well.
  at::Tensor allocate(gpu::MemoryCategory category, std::int64_t numel) const;
};

}  // namespace stratagem
