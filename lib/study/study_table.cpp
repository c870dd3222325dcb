#include "study/study_table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace stratagem {
namespace {

using Group = std::vector<CellResult const*>;

constexpr std::int64_t most_named = 20;  // cells that have not begun

/// In the order in which their first cells stand.
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

double peak_bytes(RunSummary const& run) {
  return run.peak.total() > 0 ? static_cast<double>(run.peak.total()) : RunSummary::unknown;
}

/// A number of runs that groups are compared by.
struct Measure {
  std::string name;   ///< for programs, in `name`'s unit
  std::string title;  ///< for people
  double shown;       ///< factor between the two
  int digits;         ///< for people
  std::function<double(RunSummary const&)> get;

  Spread of(Group const& group, double factor) const {
    std::vector<double> values;
    for (auto const* cell : group)
      if (cell->is_complete()) values.push_back(factor * get(*cell->summary));
    return Spread::of(std::move(values));
  }
};

std::vector<Measure> measures() {
  return {
      {"test_accuracy", "accuracy %", 100, 2, [](auto& run) { return run.test_accuracy; }},
      {"train_time_s", "time s", 1, 2, [](auto& run) { return run.train_time_s; }},
      {"images_per_s", "images/s", 1, 0, [](auto& run) { return run.images_per_s; }},
      {"step_ms", "step ms", 1, 2, [](auto& run) { return run.step_ms; }},
      {"exposed_comm_share", "exposed comm %", 100, 1, [](auto& run) { return run.exposed_share; }},
      {"peak_B", "peak MiB", 1.0 / (1 << 20), 1, peak_bytes}};
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

/// "3 complete", "2 complete, 1 failed (86)": what is complete first.
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

std::string git_and_config(Group const& group, std::string const& usual) {
  bool const same = std::ranges::all_of(group, [&](auto cell) {
    return (cell->git_sha.empty() || cell->git_sha == usual) && cell->same_config;
  });
  return same ? "" : "mixed";
}

/// Those of which a cell has begun.
std::vector<Group> begun_groups_of(std::vector<CellResult> const& cells) {
  auto groups = groups_of(cells);
  std::erase_if(groups, [](Group const& group) {
    return std::ranges::none_of(group, [](auto cell) { return has_begun(*cell); });
  });
  return groups;
}

/// "" for what is not known.
std::string full(double value) {
  return std::isfinite(value) ? shortest(value) : "";
}

nlohmann::json full_json(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

/// One result of a cell for programs.
struct Result {
  std::string name;
  std::function<nlohmann::json(CellResult const&)> get;  ///< null where it is not known
};

std::vector<Result> results() {
  using nlohmann::json;
  auto number = [](double RunSummary::*member) {
    return [member](CellResult const& cell) {
      return cell.summary && std::isfinite(*cell.summary.*member) ? json(*cell.summary.*member)
                                                                  : json();
    };
  };
  std::vector<Result> all{
      {"status", [](auto const& cell) { return json(name_of(cell.status.state)); }},
      {"reason", [](auto const& cell) { return json(cell.status.reason); }},
      {"exit_code", [](auto const& cell) { return json(to_int(cell.status.code)); }},
      {"attempt",
       [](auto const& cell) {
         return cell.status.outcome ? json(cell.status.outcome->attempt) : json();
       }},
      {"steps", [](auto const& cell) { return cell.summary ? json(cell.summary->steps) : json(); }},
      {"test_accuracy", number(&RunSummary::test_accuracy)},
      {"train_loss", number(&RunSummary::train_loss)},
      {"train_time_s", number(&RunSummary::train_time_s)},
      {"images_per_s", number(&RunSummary::images_per_s)},
      {"step_ms", number(&RunSummary::step_ms)},
      {"exposed_comm_share", number(&RunSummary::exposed_share)},
      {"peak_B",
       [](auto const& cell) { return cell.summary ? json(cell.summary->peak.total()) : json(); }}};
  for (std::size_t i = 0; i < gpu::memory_categories; ++i)
    all.push_back(
        {"peak_" + std::string(gpu::memory_category_names[i]) + "_B", [i](auto const& cell) {
           return cell.summary ? json(cell.summary->peak.bytes[i]) : json();
         }});
  all.push_back({"digest", [](auto const& cell) {
                   return cell.status.outcome ? json(cell.status.outcome->digest) : json();
                 }});
  all.push_back({"git_sha", [](auto const& cell) { return json(cell.git_sha); }});
  all.push_back({"same_config", [](auto const& cell) { return json(cell.same_config); }});
  return all;
}

std::string csv_text(nlohmann::json const& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return split(value.get<std::string>(), '\n').front();
  return value.is_number_float() ? shortest(value.get<double>()) : value.dump();
}

}  // namespace

Spread Spread::of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  auto const n = values.size();
  if (n == 0) return {RunSummary::unknown, RunSummary::unknown, RunSummary::unknown, 0};
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
  std::vector<Table::Column> columns{{"cells", Align::left}, {"ranks"}, {"n"}};
  auto const all = measures();
  for (auto const& measure : all) columns.push_back({measure.title});
  columns.push_back({"state", Align::left});
  if (mark_mixed) columns.push_back({"compares", Align::left});
  Table table(std::move(columns));
  auto const commits = commits_of(cells);
  for (auto const& group : begun_groups_of(cells)) {
    auto const& first = group.front()->entry;
    std::vector<std::string> row{first.group, std::to_string(first.ranks()), complete_in(group)};
    for (auto const& measure : all) {
      bool const limited = measure.name == "train_time_s" && is_limited(group);
      row.push_back((limited ? "> " : "") + measure.of(group, measure.shown).text(measure.digits));
    }
    row.push_back(states_of(group));
    if (mark_mixed) row.push_back(git_and_config(group, commits.empty() ? "" : commits.front()));
    table.add_row(std::move(row));
  }
  return table;
}

Table study_numbers(std::vector<CellResult> const& cells, bool mark_mixed) {
  std::vector<Table::Column> columns{{"cells"}, {"ranks"}, {"n"}};
  auto const all = measures();
  for (auto const& measure : all)
    for (auto const* part : {"_median", "_least", "_greatest", "_n"})
      columns.push_back({measure.name + part});
  columns.push_back({"time_limited"});
  columns.push_back({"state"});
  if (mark_mixed) columns.push_back({"compares"});
  Table table(std::move(columns));
  auto const commits = commits_of(cells);
  for (auto const& group : begun_groups_of(cells)) {
    auto const& first = group.front()->entry;
    std::vector<std::string> row{first.group, std::to_string(first.ranks()), complete_in(group)};
    for (auto const& measure : all) {
      auto const spread = measure.of(group, 1);
      for (double const value : {spread.median, spread.least, spread.greatest})
        row.push_back(full(value));
      row.push_back(std::to_string(spread.count));
    }
    row.push_back(is_limited(group) ? "true" : "false");
    row.push_back(states_of(group));
    if (mark_mixed) row.push_back(git_and_config(group, commits.empty() ? "" : commits.front()));
    table.add_row(std::move(row));
  }
  return table;
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
  auto const all = results();
  std::vector<Table::Column> heads;
  for (auto const& result : all) heads.push_back({result.name});
  Table table(std::move(heads));
  for (auto const& cell : cells) {
    std::vector<std::string> row;
    for (auto const& result : all) row.push_back(csv_text(result.get(cell)));
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
      auto const spread = measure.of(group, 1);
      row[measure.name] = {{"median", full_json(spread.median)},
                           {"least", full_json(spread.least)},
                           {"greatest", full_json(spread.greatest)},
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
    for (auto const& result : results()) row[result.name] = result.get(cell);
    rows.push_back(std::move(row));
  }
  json const document{{"groups", groups}, {"cells", rows}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace stratagem
