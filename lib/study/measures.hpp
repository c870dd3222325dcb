#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "study/run_summary.hpp"

namespace stratagem {

/// A number of a run, declared once: for programs in its unit, for people under a title, with
/// `shown` times its value.
struct Measure {
  std::string name;
  std::string unit;  ///< "1" for shares, "count"
  std::string meaning;
  std::function<double(RunSummary const&)> get;  ///< NaN where it is not known
  std::string title{};                           ///< empty: no table for people has it
  double shown = 1;
  int digits = 0;

  /// As tables show it; "-" where it is not known.
  std::string text(RunSummary const& run) const;
  /// Whole where the unit is; null where it is not known.
  nlohmann::json json(RunSummary const& run) const;
};

/// All there are, in the order in which programs get them.
std::vector<Measure> const& measures();
/// The one of that name.
Measure const& measure(std::string_view name);

/// Null where it is not known.
nlohmann::json json_number(double value);

/// What is known at the end of each epoch: an array of objects with the members of CurvePoint.
nlohmann::json curve_json(RunSummary const& run);

/// Names of what tables of runs show: results, categories of the peak, and what servers did.
std::span<std::string const> shown_results();
std::span<std::string const> shown_memory();
std::span<std::string const> shown_servers();

}  // namespace stratagem
