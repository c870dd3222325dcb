#include "study/summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "trace/phase.hpp"

namespace stratagem {
namespace {

using trace::RankTrace;

double median(std::vector<double> values) {
  if (values.empty()) return RunSummary::unknown;
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double sum(h5::Integers const& values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0}));
}

double last_known(h5::Reals const& values) {
  auto const known = std::find_if(values.rbegin(), values.rend(),
                                  [](double value) { return std::isfinite(value); });
  return known == values.rend() ? RunSummary::unknown : *known;
}

std::string text_of(std::map<std::string, h5::AttributeValue> const& attributes,
                    std::string const& name) {
  auto const found = attributes.find(name);
  auto const* text = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text != nullptr ? *text : "";
}

gpu::MemoryUse peak_of(RankTrace const& trace) {
  auto const& table = trace.table(trace::memory_breakdown_table());
  gpu::MemoryUse peak;
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    gpu::MemoryUse use;
    for (std::size_t i = 0; i < gpu::memory_categories; ++i)
      use.bytes[i] = table.integers(std::string(gpu::memory_category_names[i]))[row];
    if (use.total() > peak.total()) peak = use;
  }
  return peak;
}

std::string status_of(std::vector<RankTrace> const& ranks) {
  auto all = [&](trace::Status status) {
    return std::all_of(ranks.begin(), ranks.end(), [&](auto const& rank) {
      return rank.closed_cleanly && rank.status == status;
    });
  };
  if (all(trace::Status::complete)) return "complete";
  if (all(trace::Status::stopped)) return "stopped";
  auto const failed = std::any_of(ranks.begin(), ranks.end(), [](auto const& rank) {
    return rank.status == trace::Status::failed;
  });
  return failed ? "failed" : "running or killed";
}

/// Step durations of all ranks, waiting for communication within them, and the medians.
void add_steps(RankTrace const& trace, std::vector<double>& durations, double& exposed,
               double& total) {
  auto const& steps = trace.table(trace::steps_table());
  for (auto const ns : steps.integers("dur_step_ns"))
    durations.push_back(static_cast<double>(ns) * 1e-6);
  exposed += sum(steps.integers("dur_comm_exposed_ns"));
  total += sum(steps.integers("dur_step_ns"));
}

/// Epochs where there are some; a run that was killed in its first has only steps.
void add_rates(std::vector<RankTrace> const& ranks, RunSummary& summary) {
  double samples = 0, slowest = 0;
  for (auto const& rank : ranks) {
    auto const& steps = rank.table(trace::steps_table());
    samples += sum(steps.integers("samples"));
    auto const& times = rank.table(trace::epochs_table()).reals("time_s");
    double const epochs_s = std::accumulate(times.begin(), times.end(), 0.0);
    slowest =
        std::max(slowest, epochs_s > 0 ? epochs_s : sum(steps.integers("dur_step_ns")) * 1e-9);
  }
  if (slowest <= 0) return;
  summary.train_time_s = slowest;
  summary.images_per_s = samples / slowest;
}

std::string percent(double share, int digits) {
  return format_number(100 * share, digits);
}

std::string mebibytes(std::int64_t bytes) {
  return format_number(static_cast<double>(bytes) / (1 << 20), 1);
}

std::vector<Table::Column> result_columns() {
  return {{"run", Align::left},
          {"strategy", Align::left},
          {"ranks"},
          {"steps"},
          {"accuracy %"},
          {"loss"},
          {"time s"},
          {"images/s"},
          {"step ms"},
          {"exposed comm %"},
          {"peak MiB"},
          {"status", Align::left}};
}

std::vector<std::string> result_cells(RunSummary const& run) {
  return {run.name,
          run.strategy,
          std::to_string(run.ranks),
          std::to_string(run.steps),
          percent(run.test_accuracy, 2),
          format_number(run.train_loss, 4),
          format_number(run.train_time_s, 2),
          format_number(run.images_per_s, 0),
          format_number(run.step_ms, 2),
          percent(run.exposed_share, 1),
          mebibytes(run.peak.total()),
          run.status};
}

std::vector<Table::Column> memory_columns() {
  std::vector<Table::Column> columns;
  for (auto const category : gpu::memory_category_names) columns.push_back({std::string(category)});
  return columns;
}

std::vector<std::string> memory_cells(RunSummary const& run) {
  std::vector<std::string> cells;
  for (auto const bytes : run.peak.bytes) cells.push_back(mebibytes(bytes));
  return cells;
}

}  // namespace

RunSummary summarise(std::string const& name, trace::RunTraces const& traces) {
  auto const& first = traces.ranks.front();
  RunSummary summary{.name = name,
                     .strategy = text_of(first.provenance, "strategy"),
                     .model = text_of(first.provenance, "model"),
                     .dataset = text_of(first.provenance, "dataset_name"),
                     .ranks = static_cast<int>(traces.ranks.size()),
                     .status = status_of(traces.ranks),
                     .steps = first.table(trace::steps_table()).rows};
  std::vector<double> durations;
  double exposed = 0, total = 0;
  for (auto const& rank : traces.ranks) {
    add_steps(rank, durations, exposed, total);
    if (auto const peak = peak_of(rank); peak.total() > summary.peak.total()) summary.peak = peak;
  }
  summary.step_ms = median(std::move(durations));
  if (total > 0) summary.exposed_share = exposed / total;
  add_rates(traces.ranks, summary);
  summary.train_loss = last_known(first.table(trace::epochs_table()).reals("train_loss"));
  summary.test_accuracy = last_known(first.table(trace::epochs_table()).reals("test_accuracy"));
  return summary;
}

Table summary_table(std::vector<RunSummary> const& runs) {
  auto columns = result_columns();
  auto const memory = memory_columns();
  columns.insert(columns.end(), memory.begin(), memory.end());
  Table table(std::move(columns));
  for (auto const& run : runs) {
    auto row = result_cells(run);
    for (auto& cell : memory_cells(run)) row.push_back(std::move(cell));
    table.add_row(std::move(row));
  }
  return table;
}

std::string summary_text(std::vector<RunSummary> const& runs) {
  Table results(result_columns());
  auto columns = memory_columns();
  columns.insert(columns.begin(), {"peak MiB of a rank", Align::left});
  Table memory(std::move(columns));
  for (auto const& run : runs) {
    results.add_row(result_cells(run));
    auto cells = memory_cells(run);
    cells.insert(cells.begin(), run.name);
    memory.add_row(std::move(cells));
  }
  return results.render() + "\n" + memory.render();
}

std::string summary_json(std::vector<RunSummary> const& runs) {
  using nlohmann::json;
  auto number = [](double value) { return std::isfinite(value) ? json(value) : json(nullptr); };
  json rows = json::array();
  for (auto const& run : runs) {
    json memory = json::object();
    for (std::size_t i = 0; i < gpu::memory_categories; ++i)
      memory[std::string(gpu::memory_category_names[i])] = run.peak.bytes[i];
    rows.push_back({{"name", run.name},
                    {"strategy", run.strategy},
                    {"model", run.model},
                    {"dataset", run.dataset},
                    {"ranks", run.ranks},
                    {"status", run.status},
                    {"steps", run.steps},
                    {"train_time_s", number(run.train_time_s)},
                    {"images_per_s", number(run.images_per_s)},
                    {"step_ms", number(run.step_ms)},
                    {"exposed_comm_share", number(run.exposed_share)},
                    {"train_loss", number(run.train_loss)},
                    {"test_accuracy", number(run.test_accuracy)},
                    {"peak_memory_B", memory}});
  }
  return rows.dump(2) + "\n";
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
      return format_number(
          steps.rows > 0 ? sum(steps.integers(column)) * 1e-6 / static_cast<double>(steps.rows)
                         : RunSummary::unknown,
          2);
    };
    std::vector<std::string> row{name, std::to_string(rank.rank())};
    for (auto phase : trace::phase_names) row.push_back(mean(str("dur_", phase, "_ns")));
    row.push_back(mean("dur_step_ns"));
    table_.add_row(std::move(row));
  }
}

}  // namespace stratagem
