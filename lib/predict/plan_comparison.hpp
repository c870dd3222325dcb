#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/calibration.hpp"
#include "predict/forecast.hpp"
#include "predict/room.hpp"

namespace stratagem {

/// One way to share the work, beside others.
struct ComparedPlan {
  std::string name;                  ///< "ddp", "fsdp full", "ps sync", ...
  std::optional<Forecast> forecast;  ///< none where the strategy cannot do this run
  std::string problem;               ///< then: why not
  /// Options of the configuration that the strategy does not have: "overlap: false".
  std::vector<std::string> without = {};

  /// Sent per step by the rank that sends most.
  std::int64_t busiest_bytes() const;
  /// Computes what DDP does: asynchronous servers do not.
  bool trains_alike() const;
};

struct Comparison {
  std::vector<ComparedPlan> strategies;  ///< the simplest, DDP, first
  /// What a rank under DDP would hold with model.recompute: all, where that was predicted and is
  /// not so already.
  std::optional<std::int64_t> recomputed_bytes;

  ComparedPlan const& ddp() const { return strategies.front(); }
};

/// What `config` would be under DDP, ZeRO-1, 2 and 3, and a parameter server in sync and async
/// mode, each with `workers` ranks that compute; servers come on top. A strategy has all that
/// `config` says of it, and of others what means the same (Alternative). Activations are predicted
/// where `predictor` is given, times where `calibration` is. Error(usage) when no strategy can do
/// the run, with the reason.
Comparison compare_strategies(RunConfig const& config, Model const& model, int workers,
                              ActivationPredictor* predictor,
                              Calibration const* calibration = nullptr);

/// Those that train alike and whose workers fit into `room`, the simplest first.
std::vector<ComparedPlan const*> candidates(Comparison const& comparison, Room const& room);

/// The times of all of them are predicted.
bool all_timed(std::vector<ComparedPlan const*> const& plans);

/// Beyond what rounding is in bytes, of paddings and what travels with the last bucket, and the
/// error of a prediction is between strategies.
inline constexpr double byte_margin = 1.01, time_margin = 1.05;

/// The one to take of the candidates: where the times of all are predicted the one with the
/// shortest step, 5 % being no difference, else the one whose busiest rank sends least; of equal
/// ones the simplest. nullptr when none fits.
ComparedPlan const* recommended(Comparison const& comparison, Room const& room);

}  // namespace stratagem
