#include "study/summary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/median.hpp"
#include "base/text.hpp"
#include "trace/phase.hpp"

namespace stratagem {
namespace {

using trace::RankTrace;

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

double sum(h5::Reals const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Of the first rank that made any: a server makes none.
std::int64_t steps_of(std::vector<RankTrace> const& ranks) {
  auto const made = [](RankTrace const& rank) { return rank.table(trace::steps_table()).rows; };
  auto const first = std::ranges::find_if(ranks, [&](auto const& rank) { return made(rank) > 0; });
  return first == ranks.end() ? 0 : made(*first);
}

/// Nothing where no rank updated parameters for others.
std::optional<ServerSummary> servers_of(std::vector<RankTrace> const& ranks) {
  ServerSummary summary;
  double depths = 0, busy = 0, whole = 0;
  for (auto const& rank : ranks) {
    auto const& updates = rank.table(trace::ps_table());
    if (updates.rows == 0) continue;
    summary.updates = std::max(summary.updates, updates.integers("applied_version").back());
    summary.pushes += updates.rows;
    summary.pulls += static_cast<std::int64_t>(sum(updates.integers("pulled")));
    summary.dropped += static_cast<std::int64_t>(sum(updates.integers("dropped")));
    summary.overflowed += static_cast<std::int64_t>(sum(updates.integers("overflowed")));
    for (auto const lag : updates.integers("lag")) summary.lags.add(std::max<std::int64_t>(lag, 0));
    depths += sum(updates.integers("queue_depth"));
    busy += sum(updates.integers("dur_busy_ns")) * 1e-9;
    whole += sum(rank.table(trace::epochs_table()).reals("time_s"));
  }
  if (summary.pushes == 0) return std::nullopt;
  summary.queue_depth = depths / static_cast<double>(summary.pushes);
  summary.busy_share = whole > 0 ? busy / whole : RunSummary::unknown;
  return summary;
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

std::vector<Table::Column> server_columns() {
  return {{"updates"}, {"pushes"},  {"pulls"},   {"dropped"}, {"overflowed"}, {"lag mean"},
          {"lag p50"}, {"lag p95"}, {"lag p99"}, {"lag max"}, {"queue"},      {"server busy %"}};
}

std::vector<std::string> server_cells(RunSummary const& run) {
  if (!run.servers) return std::vector<std::string>(server_columns().size(), "-");
  auto const& servers = *run.servers;
  auto const lag = [&](double share) { return format_number(servers.lags.quantile(share), 0); };
  return {std::to_string(servers.updates),
          std::to_string(servers.pushes),
          std::to_string(servers.pulls),
          std::to_string(servers.dropped),
          std::to_string(servers.overflowed),
          format_number(servers.lags.mean(), 2),
          lag(0.5),
          lag(0.95),
          lag(0.99),
          lag(1),
          format_number(servers.queue_depth, 1),
          percent(servers.busy_share, 1)};
}

bool has_servers(std::vector<RunSummary> const& runs) {
  return std::ranges::any_of(runs, [](RunSummary const& run) { return run.servers.has_value(); });
}

void append(std::vector<std::string>& row, std::vector<std::string> cells) {
  std::ranges::move(cells, std::back_inserter(row));
}

/// A row per run that `shows`, its name in front.
template <class Shows, class Cells>
std::string table_of(std::string const& what, std::vector<Table::Column> columns,
                     std::vector<RunSummary> const& runs, Shows shows, Cells cells) {
  columns.insert(columns.begin(), {what, Align::left});
  Table table(std::move(columns));
  for (auto const& run : runs) {
    if (!shows(run)) continue;
    std::vector<std::string> row{run.name};
    append(row, cells(run));
    table.add_row(std::move(row));
  }
  return table.render();
}

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json servers_json(ServerSummary const& servers) {
  return {{"updates", servers.updates},
          {"pushes", servers.pushes},
          {"pulls", servers.pulls},
          {"dropped", servers.dropped},
          {"overflowed", servers.overflowed},
          {"lag_mean", number(servers.lags.mean())},
          {"lag_p50", number(servers.lags.quantile(0.5))},
          {"lag_p95", number(servers.lags.quantile(0.95))},
          {"lag_p99", number(servers.lags.quantile(0.99))},
          {"lag_max", number(servers.lags.most())},
          {"queue_depth", number(servers.queue_depth)},
          {"busy_share", number(servers.busy_share)}};
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
                     .steps = steps_of(traces.ranks)};
  std::vector<double> durations;
  double exposed = 0, total = 0;
  for (auto const& rank : traces.ranks) {
    add_steps(rank, durations, exposed, total);
    if (auto const peak = peak_of(rank); peak.total() > summary.peak.total()) summary.peak = peak;
  }
  summary.step_ms = median(std::move(durations));
  if (total > 0) summary.exposed_share = exposed / total;
  add_rates(traces.ranks, summary);
  summary.servers = servers_of(traces.ranks);
  summary.train_loss = last_known(first.table(trace::epochs_table()).reals("train_loss"));
  summary.test_accuracy = last_known(first.table(trace::epochs_table()).reals("test_accuracy"));
  return summary;
}

Table summary_table(std::vector<RunSummary> const& runs) {
  auto columns = result_columns();
  std::ranges::move(memory_columns(), std::back_inserter(columns));
  if (has_servers(runs)) std::ranges::move(server_columns(), std::back_inserter(columns));
  Table table(std::move(columns));
  for (auto const& run : runs) {
    auto row = result_cells(run);
    append(row, memory_cells(run));
    if (has_servers(runs)) append(row, server_cells(run));
    table.add_row(std::move(row));
  }
  return table;
}

std::string summary_text(std::vector<RunSummary> const& runs) {
  auto const all = [](RunSummary const&) { return true; };
  auto const with_servers = [](RunSummary const& run) { return run.servers.has_value(); };
  Table results(result_columns());
  for (auto const& run : runs) results.add_row(result_cells(run));
  auto text = results.render() + "\n" +
              table_of("peak MiB of a rank", memory_columns(), runs, all, memory_cells);
  if (has_servers(runs))
    text += "\n" + table_of("servers", server_columns(), runs, with_servers, server_cells);
  return text;
}

std::string summary_json(std::vector<RunSummary> const& runs) {
  using nlohmann::json;
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
    if (run.servers) rows.back()["servers"] = servers_json(*run.servers);
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
