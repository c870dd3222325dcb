#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/watchdog/watchdog_config.hpp"
#include "gpu/device.hpp"
#include "gpu/memory.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "strategy/strategy.hpp"
#include "strategy/strategy_config.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// What every member is made of. The references outlive it.
struct StrategyParts {
  Model const& model;
  Communicator& communicator;
  trace::Recorder& recorder;
  gpu::Device device;
  OptimizerConfig optimizer;
  PrecisionConfig precision;
  std::uint64_t seed = 1;
  bool dropout = true;
  Recompute recompute;
  /// By which a server finds that a worker is missing; else none ever is.
  WatchdogConfig watchdog = {.enabled = false};

  /// Of a training pass.
  Context context_of(Batch const& batch) const;
  /// Zeroed memory for so many elements of the master type, which the communicator moves well.
  at::Tensor allocate(gpu::MemoryCategory category, std::int64_t numel) const;
};

/// What the calling rank is under this strategy. Collective.
Member make_member(StrategyConfig const& config, StrategyParts const& parts);

/// For `stratagem list`.
struct StrategyEntry {
  std::string name;
  std::string description;
};
std::vector<StrategyEntry> const& strategy_catalogue();

}  // namespace stratagem
