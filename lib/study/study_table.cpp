#include "study/study_table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "study/measures.hpp"

namespace stratagem {
namespace {

using Group = std::vector<CellResult const*>;

constexpr std::int64_t most_named = 20;  // of cells that have not begun

/// In the order of their first cells.
std::vector<Group> groups_of(std::vector<CellResult> const& cells) {
  std::vector<Group> groups;
  for (auto const& cell : cells) {
    auto const known = std::ranges::find(
        groups, cell.entry.group, [](Group const& group) { return group.front()->entry.group; });
    if (known == groups.end()) {
      groups.push_back({&cell});
    } else {
      known->push_back(&cell);
    }
  }
  return groups;
}

std::vector<RunSummary> summaries_of(std::vector<CellResult> const& cells) {
  std::vector<RunSummary> all;
  for (auto const& cell : cells)
    if (cell.summary) all.push_back(*cell.summary);
  return all;
}

/// The measures by which groups are compared; of text, its own as well.
std::vector<std::string> compared(std::vector<RunSummary> const& runs) {
  std::vector<std::string> names{"test_accuracy", "train_time_s",       "images_per_s",
                                 "step_ms",       "exposed_comm_share", "peak_B"};
  if (std::ranges::count(runs, "tokens", &RunSummary::labels) > 0)
    std::ranges::copy(shown_text(), std::back_inserter(names));
  return names;
}

/// Over the complete cells; `factor` times the measure.
Spread spread_of(Group const& group, Measure const& measure, double factor) {
  std::vector<double> values;
  for (auto const* cell : group)
    if (cell->is_complete()) values.push_back(factor * measure.get(*cell->summary));
  return Spread::of(std::move(values));
}

bool hit_time_limit(CellResult const& cell) {
  return cell.is_complete() && cell.status.reason == "time_limit";
}

bool is_limited(Group const& group) {
  return std::ranges::any_of(group, [](auto cell) { return hit_time_limit(*cell); });
}

std::string complete_in(Group const& group) {
  return std::to_string(
      std::ranges::count_if(group, [](auto cell) { return cell->is_complete(); }));
}

bool has_begun(CellResult const& cell) {
  return cell.status.state != CellState::missing;
}

std::string state_of(CellResult const& cell) {
  auto const text = std::string(name_of(cell.status.state));
  if (cell.status.state == CellState::complete && !cell.is_complete()) return "without traces";
  return cell.status.state == CellState::failed ? str(text, " (", to_int(cell.status.code), ")")
                                                : text;
}

/// "3 complete", "2 complete, 1 failed (86)": complete cells come first.
std::string states_of(Group const& group) {
  std::vector<std::pair<std::string, int>> counts{{std::string(name_of(CellState::complete)), 0}};
  for (auto const* cell : group) {
    auto const text = state_of(*cell);
    auto const known = std::ranges::find(counts, text, &std::pair<std::string, int>::first);
    if (known == counts.end())
      counts.emplace_back(text, 1);
    else
      ++known->second;
  }
  std::vector<std::string> parts;
  for (auto const& [text, count] : counts)
    if (count > 0) parts.push_back(str(count, " ", text));
  return join(parts, ", ");
}

/// No file held something else when the other cell read it.
bool read_alike(CellResult const& one, CellResult const& other) {
  return std::ranges::all_of(one.files, [&](auto const& file) {
    auto const found = other.files.find(file.first);
    return found == other.files.end() || found->second == file.second;
  });
}

/// Whether the cells of a group are of one program, the study's configuration and the same files.
std::string how_mixed(Group const& group, std::string const& usual) {
  bool const same = std::ranges::all_of(group, [&](auto cell) {
    return (cell->git_sha.empty() || cell->git_sha == usual) && cell->same_config &&
           read_alike(*cell, *group.front());
  });
  return same ? "" : "mixed";
}

/// The groups with at least one cell that has begun.
std::vector<Group> begun_groups_of(std::vector<CellResult> const& cells) {
  auto groups = groups_of(cells);
  std::erase_if(groups, [](Group const& group) {
    return std::ranges::none_of(group, [](auto cell) { return has_begun(*cell); });
  });
  return groups;
}

/// "" if unknown.
std::string full(double value) {
  return std::isfinite(value) ? shortest(value) : "";
}

/// A cell's numbers for programs, in the order of summary.csv; null if unknown.
std::vector<std::pair<std::string, nlohmann::json>> results_of(CellResult const& cell) {
  using nlohmann::json;
  auto const& outcome = cell.status.outcome;
  std::vector<std::pair<std::string, json>> results{
      {"status", name_of(cell.status.state)},
      {"reason", cell.status.reason},
      {"exit_code", to_int(cell.status.code)},
      {"exit_code_meaning", describe(cell.status.code)},
      {"directory", cell.directory},
      {"attempt", outcome ? json(outcome->attempt) : json()},
      {"steps", cell.summary ? json(cell.summary->steps) : json()}};
  for (auto const& measure : measures())
    results.emplace_back(measure.name, cell.summary ? measure.json(*cell.summary) : json());
  results.emplace_back("digest", outcome ? json(outcome->digest) : json());
  results.emplace_back("git_sha", cell.git_sha);
  results.emplace_back("same_config", cell.same_config);
  return results;
}

std::string csv_text(nlohmann::json const& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return split(value.get<std::string>(), '\n').front();
  return value.is_number_float() ? shortest(value.get<double>()) : value.dump();
}

/// One row per group that has begun: its name, its `numbers` under `columns`, and its state.
template <class Numbers>
Table table_of_groups(std::vector<CellResult> const& cells, bool mark_mixed,
                      std::vector<Table::Column> const& columns, Numbers const& numbers) {
  std::vector<Table::Column> all{{"cells", Align::left}, {"ranks"}, {"n"}};
  all.insert(all.end(), columns.begin(), columns.end());
  all.push_back({"state", Align::left});
  if (mark_mixed) all.push_back({"compares", Align::left});
  Table table(std::move(all));
  auto const commits = commits_of(cells);
  for (auto const& group : begun_groups_of(cells)) {
    auto const& first = group.front()->entry;
    std::vector<std::string> row{first.group, std::to_string(first.ranks()), complete_in(group)};
    std::ranges::move(numbers(group), std::back_inserter(row));
    row.push_back(states_of(group));
    if (mark_mixed) row.push_back(how_mixed(group, commits.empty() ? "" : commits.front()));
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace

Spread Spread::of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  auto const n = values.size();
  if (n == 0) return {trace::unknown, trace::unknown, trace::unknown, 0};
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back(), n};
}

std::string Spread::text(int digits) const {
  auto const middle = format_number(median, digits);
  if (count < 2) return middle;
  return middle + " [" + format_number(least, digits) + ", " + format_number(greatest, digits) +
         "]";
}

std::vector<std::string> commits_of(std::vector<CellResult> const& cells) {
  std::set<std::string> commits;
  for (auto const& cell : cells)
    if (!cell.git_sha.empty()) commits.insert(cell.git_sha);
  return {commits.begin(), commits.end()};
}

Table study_table(std::vector<CellResult> const& cells, bool mark_mixed) {
  auto const runs = summaries_of(cells);
  auto const names = compared(runs);
  std::vector<Table::Column> columns;
  for (auto const& name : names) columns.push_back({title_of(measure(name), runs)});
  auto const numbers = [&names](Group const& group) {
    std::vector<std::string> row;
    for (auto const& name : names) {
      auto const& of = measure(name);
      bool const limited = name == "train_time_s" && is_limited(group);
      row.push_back((limited ? "> " : "") + spread_of(group, of, of.shown).text(of.digits));
    }
    return row;
  };
  return table_of_groups(cells, mark_mixed, columns, numbers);
}

Table study_numbers(std::vector<CellResult> const& cells, bool mark_mixed) {
  auto const names = compared(summaries_of(cells));
  std::vector<Table::Column> columns;
  for (auto const& name : names)
    for (auto const* part : {"_median", "_least", "_greatest", "_n"})
      columns.push_back({name + part});
  columns.push_back({"time_limited"});
  auto const numbers = [&names](Group const& group) {
    std::vector<std::string> row;
    for (auto const& name : names) {
      auto const spread = spread_of(group, measure(name), 1);
      for (double const value : {spread.median, spread.least, spread.greatest})
        row.push_back(full(value));
      row.push_back(std::to_string(spread.count));
    }
    row.emplace_back(is_limited(group) ? "true" : "false");
    return row;
  };
  return table_of_groups(cells, mark_mixed, columns, numbers);
}

Table missing_table(std::vector<CellResult> const& cells, StudyDirectory const& study) {
  Table table({{"cell", Align::left},
               {"state", Align::left},
               {"reason", Align::left},
               {"repeat with", Align::left}});
  auto const repeat = [&](std::string const& which) {
    return str("stratagem sweep ", study.study_file(), " ", which, " --out ",
               study.path().string());
  };
  std::int64_t not_begun = 0;
  for (auto const& cell : cells) {
    if (cell.is_complete()) continue;
    if (!has_begun(cell) && ++not_begun > most_named) continue;
    bool const torn = cell.status.state == CellState::complete;
    table.add_row({cell.entry.name, std::string(name_of(cell.status.state)),
                   torn ? "no usable trace" : split(cell.status.reason, '\n').front(),
                   repeat(str("--index ", cell.entry.index))});
  }
  if (not_begun > most_named)
    table.add_row({str("and ", format_count(not_begun - most_named), " more"),
                   std::string(name_of(CellState::missing)), "not started", repeat("--all")});
  return table;
}

std::string summary_csv(std::vector<CellResult> const& cells) {
  std::vector<CellEntry> entries;
  for (auto const& cell : cells) entries.push_back(cell.entry);
  std::vector<Table::Column> heads;
  for (auto const& [name, value] : results_of({})) heads.push_back({name});
  Table table(std::move(heads));
  for (auto const& cell : cells) {
    std::vector<std::string> row;
    for (auto const& [name, value] : results_of(cell)) row.push_back(csv_text(value));
    table.add_row(std::move(row));
  }
  auto const left = split(cells_csv(entries), '\n');
  auto const right = split(table.render(TableFormat::csv), '\n');
  std::string text;
  for (std::size_t i = 0; i <= cells.size(); ++i) text += left[i] + "," + right[i] + "\n";
  return text;
}

std::string study_json(std::vector<CellResult> const& cells) {
  using nlohmann::json;
  json groups = json::array(), rows = json::array();
  for (auto const& group : begun_groups_of(cells)) {
    auto const& first = group.front()->entry;
    json row{{"group", first.group},
             {"ranks", first.ranks()},
             {"state", states_of(group)},
             {"time_limited", is_limited(group)}};
    for (auto const& measure : measures()) {
      auto const spread = spread_of(group, measure, 1);
      row[measure.name] = {{"median", json_number(spread.median)},
                           {"least", json_number(spread.least)},
                           {"greatest", json_number(spread.greatest)},
                           {"n", spread.count}};
    }
    groups.push_back(std::move(row));
  }
  for (auto const& cell : cells) {
    auto const& entry = cell.entry;
    json row{{"index", entry.index},     {"cell", entry.name},         {"group", entry.group},
             {"part", entry.part},       {"model", entry.model},       {"dataset", entry.dataset},
             {"variant", entry.variant}, {"strategy", entry.strategy}, {"workers", entry.workers},
             {"servers", entry.servers}, {"ranks", entry.ranks()},     {"seed", entry.seed}};
    for (auto const& [name, value] : results_of(cell)) row[name] = value;
    if (cell.summary) add_lists(row, *cell.summary);
    rows.push_back(std::move(row));
  }
  json const document{{"groups", groups}, {"cells", rows}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace stratagem
