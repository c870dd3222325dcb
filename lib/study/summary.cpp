#include "study/summary.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.hpp"
#include "study/measures.hpp"
#include "trace/phase.hpp"

namespace stratagem {
namespace {

using Names = std::span<std::string const>;

using Runs = std::vector<RunSummary>;

/// `unit`: where the titles do not say it themselves, with a space before it.
void add_columns(std::vector<Table::Column>& columns, Names names, Runs const& runs,
                 std::string const& unit = {}) {
  for (auto const& name : names) columns.push_back({title_of(measure(name), runs) + unit});
}

void add_cells(std::vector<std::string>& row, RunSummary const& run, Names names) {
  for (auto const& name : names) row.push_back(measure(name).text(run));
}

std::vector<Table::Column> result_columns(Runs const& runs) {
  std::vector<Table::Column> columns{
      {"run", Align::left}, {"strategy", Align::left}, {"ranks"}, {"steps"}};
  add_columns(columns, shown_results(), runs);
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

/// Some run of text has something to tell beyond what all runs have.
bool has_text(Runs const& runs) {
  return std::ranges::any_of(runs, [](RunSummary const& run) {
    return run.labels == "tokens" && (std::isfinite(run.test_loss) || std::isfinite(run.mfu));
  });
}

bool has_servers(Runs const& runs) {
  return std::ranges::any_of(runs, [](RunSummary const& run) { return run.servers.has_value(); });
}

/// One row per run that has some of these measures, with its name in the first column.
std::string table_of(std::string const& what, Runs const& runs, Names names) {
  std::vector<Table::Column> columns{{what, Align::left}};
  add_columns(columns, names, runs);
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

Table summary_table(Runs const& runs) {
  auto columns = result_columns(runs);
  add_columns(columns, shown_memory(), runs, " MiB");
  if (has_text(runs)) add_columns(columns, shown_text(), runs);
  if (has_servers(runs)) add_columns(columns, shown_servers(), runs);
  Table table(std::move(columns));
  for (auto const& run : runs) {
    auto row = result_cells(run);
    add_cells(row, run, shown_memory());
    if (has_text(runs)) add_cells(row, run, shown_text());
    if (has_servers(runs)) add_cells(row, run, shown_servers());
    table.add_row(std::move(row));
  }
  return table;
}

std::string summary_text(Runs const& runs) {
  Table results(result_columns(runs));
  for (auto const& run : runs) results.add_row(result_cells(run));
  auto text = results.render() + "\n" + table_of("peak MiB of a rank", runs, shown_memory());
  if (has_text(runs)) text += "\n" + table_of("text", runs, shown_text());
  if (has_servers(runs)) text += "\n" + table_of("servers", runs, shown_servers());
  return text;
}

Table phase_table(Runs const& runs) {
  std::vector<Table::Column> columns{{"run", Align::left}, {"rank"}};
  for (auto const phase : trace::phase_names) columns.push_back({str(phase, " ms")});
  columns.push_back({"step ms"});
  Table table(std::move(columns));
  for (auto const& run : runs)
    for (auto const& rank : run.by_rank) {
      std::vector<std::string> row{run.name, std::to_string(rank.rank)};
      for (double const ms : rank.phase_ms) row.push_back(format_number(ms, 2));
      row.push_back(format_number(rank.step_ms, 2));
      table.add_row(std::move(row));
    }
  return table;
}

}  // namespace stratagem
