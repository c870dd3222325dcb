#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/run_config.hpp"
#include "predict/activations.hpp"
#include "predict/calibration.hpp"
#include "predict/room.hpp"

namespace stratagem::app {

/// A run of a study, to be planned.
struct PlannedCell {
  std::string name;
  RunConfig config;  ///< run.ranks is given
};

/// Whether `path` is a study's file or directory, not a configuration.
bool names_study(std::string const& path);

/// The cells of a study's file, with `overrides` for all; of a directory those that were started,
/// as they were. Error(usage) listing all problems.
std::vector<PlannedCell> cells_of(std::string const& path,
                                  std::vector<std::string> const& overrides);

struct StudyPlan {
  std::string text;  ///< a row per cell
  std::string json;  ///< {"cells": {NAME: what plan --json says, or {"problem": ...}}}
  int refused = 0;   ///< cells that cannot run
};

/// `predictor`: nullptr without activations; `calibration`: without times.
StudyPlan plan_study(std::vector<PlannedCell> const& cells, ActivationPredictor* predictor,
                     Calibration const* calibration, Room const& room);

}  // namespace stratagem::app
