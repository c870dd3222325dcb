#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "predict/forecast.hpp"

namespace stratagem {

/// Whose figures they are from, as a paragraph; empty where the machine was measured.
std::string source_text(PredictedTime const& time);
/// What a forecast says of the time: a table, or why there is none; empty where nobody asked.
std::string time_text(Forecast const& forecast);
/// The same as JSON: {"step_s": ..., ...} or {"problem": ...}; nothing where nobody asked.
std::optional<nlohmann::json> time_json(Forecast const& forecast);

}  // namespace stratagem
