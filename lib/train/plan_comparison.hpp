#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/calibration.hpp"
#include "train/run_plan.hpp"

namespace stratagem {

/// One way to share the work, beside others.
struct ComparedPlan {
  std::string name;             ///< "ddp", "fsdp, shard full", "ps, mode sync", ...
  std::optional<RunPlan> plan;  ///< none where the strategy cannot do this run
  std::string problem;          ///< then: why not

  /// Sent per step by the rank that sends most.
  std::int64_t busiest_bytes() const;
};

/// What `config` would be under DDP, ZeRO-1, 2 and 3, and a parameter server in sync and async
/// mode, each with `workers` ranks that compute; servers come on top. A strategy keeps what
/// `config` says of it. Activations are predicted where `predictor` is given, times where
/// `calibration` is.
std::vector<ComparedPlan> compare_strategies(RunConfig const& config, Model const& model,
                                             int workers, ActivationPredictor* predictor,
                                             Calibration const* calibration = nullptr);

/// The one to take of those that train alike and fit into `room` bytes (0: not known): where the
/// times of all are predicted the one with the shortest step, 5 % being no difference, else the one
/// whose busiest rank sends least; of equal ones the simplest. nullptr when none fits. Servers in
/// async mode are no candidates, for they change what is computed.
ComparedPlan const* recommended(std::vector<ComparedPlan> const& compared, std::int64_t room);

/// Side by side, and which one to take, with the reason.
std::string comparison_text(std::vector<ComparedPlan> const& compared, std::int64_t room);
std::string comparison_json(std::vector<ComparedPlan> const& compared, std::int64_t room);

}  // namespace stratagem
