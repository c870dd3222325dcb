#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "study/run_summary.hpp"

namespace stratagem {

/// A number of a run, declared once. Programs get it in its unit; people get it under a title,
/// multiplied by `shown`.
struct Measure {
  std::string name;
  std::string unit;  ///< "1" for shares, "count"
  std::string meaning;
  std::function<double(RunSummary const&)> get;  ///< NaN if unknown
  std::string title{};                           ///< empty: in no table for people
  double shown = 1;
  int digits = 0;

  /// As tables show it; "-" if unknown.
  std::string text(RunSummary const& run) const;
  /// An integer if the unit is one; null if unknown.
  nlohmann::json json(RunSummary const& run) const;
};

/// All measures, in the order in which programs get them.
std::vector<Measure> const& measures();
/// The measure with this name.
Measure const& measure(std::string_view name);

/// Null if unknown.
nlohmann::json json_number(double value);

/// What is no single number: "curve", an object with the members of CurvePoint per epoch;
/// "by_rank", one per rank, its step and phases as means; "lag_counts", how many pushes had lag 0,
/// 1, and so on, empty without servers.
void add_lists(nlohmann::json& row, RunSummary const& run);

/// What tables of these runs call a measure: images/s of runs of text are tokens/s.
std::string title_of(Measure const& measure, std::vector<RunSummary> const& runs);

/// Names of the measures that tables of runs show: results, also of text, categories of the peak,
/// and servers.
std::span<std::string const> shown_results();
std::span<std::string const> shown_text();
std::span<std::string const> shown_memory();
std::span<std::string const> shown_servers();

}  // namespace stratagem
