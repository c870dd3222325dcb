#include "study/summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "study/measures.hpp"
#include "trace/phase.hpp"

namespace stratagem {
namespace {

using Names = std::span<std::string const>;

void add_columns(std::vector<Table::Column>& columns, Names names) {
  for (auto const& name : names) columns.push_back({measure(name).title});
}

void add_cells(std::vector<std::string>& row, RunSummary const& run, Names names) {
  for (auto const& name : names) row.push_back(measure(name).text(run));
}

std::vector<Table::Column> result_columns() {
  std::vector<Table::Column> columns{
      {"run", Align::left}, {"strategy", Align::left}, {"ranks"}, {"steps"}};
  add_columns(columns, shown_results());
  columns.push_back({"status", Align::left});
  return columns;
}

std::vector<std::string> result_cells(RunSummary const& run) {
  std::vector<std::string> row{run.name, run.strategy, std::to_string(run.ranks),
                               std::to_string(run.steps)};
  add_cells(row, run, shown_results());
  row.push_back(run.status);
  return row;
}

bool has_servers(std::vector<RunSummary> const& runs) {
  return std::ranges::any_of(runs, [](RunSummary const& run) { return run.servers.has_value(); });
}

/// One row per run that has some of these measures, with its name in the first column.
std::string table_of(std::string const& what, std::vector<RunSummary> const& runs, Names names) {
  std::vector<Table::Column> columns{{what, Align::left}};
  add_columns(columns, names);
  Table table(std::move(columns));
  for (auto const& run : runs) {
    auto const is_known = [&](auto const& name) { return std::isfinite(measure(name).get(run)); };
    if (std::ranges::none_of(names, is_known)) continue;
    std::vector<std::string> row{run.name};
    add_cells(row, run, names);
    table.add_row(std::move(row));
  }
  return table.render();
}

}  // namespace

Table summary_table(std::vector<RunSummary> const& runs) {
  auto columns = result_columns();
  add_columns(columns, shown_memory());
  if (has_servers(runs)) add_columns(columns, shown_servers());
  Table table(std::move(columns));
  for (auto const& run : runs) {
    auto row = result_cells(run);
    add_cells(row, run, shown_memory());
    if (has_servers(runs)) add_cells(row, run, shown_servers());
    table.add_row(std::move(row));
  }
  return table;
}

std::string summary_text(std::vector<RunSummary> const& runs) {
  Table results(result_columns());
  for (auto const& run : runs) results.add_row(result_cells(run));
  auto text = results.render() + "\n" + table_of("peak MiB of a rank", runs, shown_memory());
  if (has_servers(runs)) text += "\n" + table_of("servers", runs, shown_servers());
  return text;
}

std::string summary_json(std::vector<RunResult> const& runs) {
  using nlohmann::json;
  json rows = json::array();
  for (auto const& run : runs) {
    auto const& summary = run.summary;
    json row{{"name", summary.name},         {"directory", run.directory},
             {"strategy", summary.strategy}, {"model", summary.model},
             {"dataset", summary.dataset},   {"ranks", summary.ranks},
             {"status", summary.status},     {"state", name_of(run.status.state)},
             {"reason", run.status.reason},  {"exit_code", to_int(run.status.code)},
             {"exit_code_meaning", describe(run.status.code)}, {"steps", summary.steps}};
    for (auto const& measure : measures()) row[measure.name] = measure.json(summary);
    row["curve"] = curve_json(summary);
    rows.push_back(std::move(row));
  }
  return rows.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

PhaseTable::PhaseTable()
    : table_([] {
        std::vector<Table::Column> columns{{"run", Align::left}, {"rank"}};
        for (auto phase : trace::phase_names) columns.push_back({str(phase, " ms")});
        columns.push_back({"step ms"});
        return columns;
      }()) {}

void PhaseTable::add(std::string const& name, trace::RunTraces const& traces) {
  for (auto const& rank : traces.ranks) {
    auto const& steps = rank.table(trace::steps_table());
    auto mean = [&](std::string const& column) {
      auto const& values = steps.integers(column);
      auto const sum_ns = std::accumulate(values.begin(), values.end(), std::int64_t{0});
      return format_number(steps.rows > 0 ? static_cast<double>(sum_ns) * 1e-6 /
                                                static_cast<double>(steps.rows)
                                          : trace::unknown,
                           2);
    };
    std::vector<std::string> row{name, std::to_string(rank.rank())};
    for (auto phase : trace::phase_names) row.push_back(mean(str("dur_", phase, "_ns")));
    row.push_back(mean("dur_step_ns"));
    table_.add_row(std::move(row));
  }
}

}  // namespace stratagem
