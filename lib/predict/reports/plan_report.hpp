#pragma once

#include <string>

#include "model/model.hpp"
#include "predict/forecast.hpp"
#include "predict/room.hpp"

namespace stratagem {

/// The plan as tables for people: the run, bytes per rank and whether they fit into `room`,
/// buckets, which rank does what.
std::string plan_text(Forecast const& forecast, Model const& model, Room const& room = {});
/// The same as one JSON object.
std::string plan_json(Forecast const& forecast, Model const& model, Room const& room = {});

}  // namespace stratagem
