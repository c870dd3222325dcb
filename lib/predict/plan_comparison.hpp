#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/calibration.hpp"
#include "predict/forecast.hpp"
#include "predict/room.hpp"
#include "predict/savings.hpp"

namespace stratagem {

/// One way to share the work, beside others.
struct ComparedPlan {
  std::string name;                  ///< "ddp", "fsdp full", "ps sync", ...
  std::optional<Forecast> forecast;  ///< none where the strategy cannot do this run
  std::string problem;               ///< then: why not
  /// Options of the configuration that the strategy does not have: "overlap: false".
  std::vector<std::string> without = {};
  bool same_numbers = true;  ///< none of these changes what is computed

  /// Sent per step by the rank that sends most.
  std::int64_t busiest_bytes() const;
  /// Predicted time of a step [s]. There has to be one.
  double step_s() const;
  /// Computes what one process would with all options of the configuration: asynchronous servers do
  /// not, nor does a strategy that lacks the code of its gradients.
  bool trains_alike() const;
};

struct Comparison {
  std::vector<ComparedPlan> strategies;  ///< the simplest, DDP, first
  /// What makes a rank hold less: of the strategy that is nearest to fitting where none fits, else
  /// of DDP where activations are most of what a rank holds.
  std::string saving_strategy;  ///< "" where there is nothing to say
  std::vector<Saving> savings;
  bool mixes_samples = false;  ///< see Model

  ComparedPlan const& ddp() const { return strategies.front(); }
};

/// What `config` would be under DDP, ZeRO-1, 2 and 3, and a parameter server in sync and async
/// mode, each with `workers` ranks that compute; servers come on top. A strategy has all that
/// `config` says of it, and of others what means the same (Alternative). Activations are predicted
/// where `predictor` is given, times where `calibration` is; savings are for `room`. Error(usage)
/// when no strategy can do the run, with the reason.
Comparison compare_strategies(RunConfig const& config, Model const& model, int workers,
                              ActivationPredictor* predictor, Room const& room = {},
                              Calibration const* calibration = nullptr);

/// Those that train alike and whose workers fit into `room`, the simplest first.
std::vector<ComparedPlan const*> candidates(Comparison const& comparison, Room const& room);

/// Of those that train alike, the one whose ranks hold least; nullptr where there is none.
ComparedPlan const* smallest(Comparison const& comparison);
/// Whether some plan fits, however it trains.
bool any_fits(Comparison const& comparison, Room const& room);

/// Whether the times of all of them are predicted, and how far their ratios are off is known.
bool told_apart_by_time(std::vector<ComparedPlan const*> const& plans);

/// Bytes of paddings, and of what travels with the last bucket, are no difference.
inline constexpr double byte_margin = 1.01;
/// The one with the shortest step, of timed ones. There has to be one.
ComparedPlan const* shortest_of(std::vector<ComparedPlan const*> const& plans);
/// Whether one predicted step is shorter than another by more than their ratio may be off.
bool is_shorter(ComparedPlan const& one, ComparedPlan const& other);

/// The one to take of the candidates: the one with the shortest step where times tell them apart,
/// else the one whose busiest rank sends least; of those that are not told apart from it, the
/// simplest. nullptr when none fits.
ComparedPlan const* recommended(Comparison const& comparison, Room const& room);

}  // namespace stratagem
