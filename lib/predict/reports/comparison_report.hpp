#pragma once

#include <string>

#include "predict/plan_comparison.hpp"

namespace stratagem {

/// Strategies side by side: memory, traffic and, where they were predicted, times; whether FSDP
/// would help, and which one to take, with the reasons.
std::string comparison_text(Comparison const& comparison, Room const& room);
/// The same as one JSON object.
std::string comparison_json(Comparison const& comparison, Room const& room);

}  // namespace stratagem
