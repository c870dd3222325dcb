#include "trace/collect.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <new>
#include <optional>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "h5/error.hpp"
#include "h5/reader.hpp"
#include "h5/trial.hpp"
#include "h5/writer.hpp"

namespace stratagem::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_ranks = 1 << 20;
constexpr int most_missing_named = 20;

/// A file that a rank wrote in one attempt, identified by its name.
struct RankFile {
  std::int64_t attempt;
  int rank;
  fs::path path;

  auto operator<=>(RankFile const&) const = default;
};

/// The n in <prefix><n><suffix>, if it is written as this program writes it.
std::optional<int> number_in(std::string const& name, std::string const& prefix,
                             std::string const& suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  auto const digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  auto const number = parse_integer(digits);
  if (!number || *number < 0 || *number >= most_ranks) return std::nullopt;
  return static_cast<int>(*number);
}

/// trace/a0/rank-0000.h5, trace/a0/rank-0001.h5, trace/a1/...: sorted by attempt, then rank. Links
/// are left out, because they lead to files that do not belong to this run.
std::vector<RankFile> rank_files(fs::path const& run, std::vector<std::string>& remarks) {
  std::vector<RankFile> files;
  std::error_code ignored;
  for (auto const& attempt : fs::directory_iterator(run / "trace", ignored)) {
    auto const number = number_in(attempt.path().filename().string(), "a", "");
    if (!number || !fs::is_directory(attempt.symlink_status(ignored))) continue;
    for (auto const& file : fs::directory_iterator(attempt.path(), ignored)) {
      auto const rank = number_in(file.path().filename().string(), "rank-", ".h5");
      if (!rank || file.path().filename() != rank_label(*rank) + ".h5") continue;
      if (fs::is_regular_file(file.symlink_status(ignored)))
        files.push_back({*number, *rank, file.path()});
      else
        remarks.push_back("left out: " + file.path().string() + " is no regular file");
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

RankTrace read_own(RankFile const& file) {
  h5::try_in_child(file.path, [&] { read_rank_trace(file.path); });
  auto trace = read_rank_trace(file.path);
  if (trace.rank() != file.rank)
    throw Error(ExitCode::bad_data,
                str(file.path.string(), " holds the trace of rank ", trace.rank()));
  return trace;
}

/// The number of ranks of the run, as far as its traces can be trusted.
std::int64_t world_of(RankTrace const& trace) {
  auto const found = trace.process.find("world");
  auto const* world =
      found == trace.process.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  return world == nullptr ? 0 : std::clamp<std::int64_t>(*world, 0, most_ranks);
}

void append_rows(h5::TableData& to, h5::TableData const& from) {
  for (auto& [name, column] : to.columns)
    std::visit(
        [&, &name = name](auto& values) {
          auto const& more = std::get<std::decay_t<decltype(values)>>(from.columns.at(name));
          values.insert(values.end(), more.begin(), more.end());
        },
        column);
  to.rows += from.rows;
}

/// Keeps the rows whose value in `column` is less than `end`, in their order.
void keep_before(h5::TableData& table, std::string const& column, std::int64_t end) {
  auto const values = table.integers(column);
  table.rows = std::ranges::count_if(values, [end](std::int64_t value) { return value < end; });
  for (auto& [_, of_column] : table.columns)
    std::visit(
        [&](auto& rows) {
          std::size_t row = 0;
          std::erase_if(rows, [&](auto const&) { return values[row++] >= end; });
        },
        of_column);
}

/// The least value of these columns; nothing where there are no rows.
std::optional<std::int64_t> least(RankTrace const& trace, std::vector<h5::TableSpec> const& specs,
                                  std::string const& column) {
  std::optional<std::int64_t> least;
  for (auto const& spec : specs)
    for (auto const value : trace.table(spec).integers(column))
      least = std::min(value, least.value_or(value));
  return least;
}

/// What `later` made again counts there alone. Servers and lanes of spans write their rows in
/// another order than that of the steps.
void drop_repeated(RankTrace& earlier, RankTrace const& later) {
  if (auto const step = least(later, {steps_table(), ps_table()}, "step"))
    for (auto const& spec : {steps_table(), ps_table(), spans_table()})
      keep_before(earlier.tables.at(spec.path), "step", *step);
  if (auto const epoch = least(later, {epochs_table()}, "epoch"))
    keep_before(earlier.tables.at(epochs_table().path), "epoch", *epoch);
}

/// From now on, name ids of `later` refer to entries after the names of `earlier`.
void shift_ids(RankTrace& later, std::int64_t shift) {
  for (auto const& [table, column] :
       {std::pair{"/spans", "name_id"}, {"/events", "name_id"}, {"/events", "text_id"}})
    for (auto& id : std::get<h5::Integers>(later.tables.at(table).columns.at(column))) id += shift;
}

/// An attempt counts its versions from 0. Those of a run continue where the last attempt ended, by
/// chunk.
void shift_versions(RankTrace const& earlier, RankTrace& later) {
  std::map<std::int64_t, std::int64_t> reached;
  auto const& before = earlier.table(ps_table());
  for (std::size_t row = 0; row < static_cast<std::size_t>(before.rows); ++row) {
    auto& version = reached[before.integers("chunk")[row]];
    version = std::max(version, before.integers("applied_version")[row]);
  }
  auto& more = later.tables.at(ps_table().path);
  auto const& chunks = more.integers("chunk");
  for (auto const* column : {"base_version", "applied_version"}) {
    auto& versions = std::get<h5::Integers>(more.columns.at(column));
    for (std::size_t row = 0; row < versions.size(); ++row) versions[row] += reached[chunks[row]];
  }
}

/// The difference between what two attempts trained: "resnet50 and lenet"; "" if there is none.
std::string difference(RankTrace const& earlier, RankTrace const& later) {
  for (auto const* what : {"model", "dataset_name"}) {
    auto const one = earlier.provenance.find(what), other = later.provenance.find(what);
    if (one == earlier.provenance.end() || other == later.provenance.end()) continue;
    if (one->second != other->second)
      return str(std::get<std::string>(one->second), " and ", std::get<std::string>(other->second));
  }
  return {};
}

void join_attempt(RankTrace& earlier, RankTrace later) {
  drop_repeated(earlier, later);
  shift_ids(later, earlier.table(names_table()).rows);
  shift_versions(earlier, later);
  for (auto& [path, table] : earlier.tables) append_rows(table, later.tables.at(path));
  earlier.path = later.path;
  earlier.closed_cleanly = later.closed_cleanly;
  earlier.status = later.status;
  earlier.dropped += later.dropped;
  earlier.provenance = std::move(later.provenance);
  earlier.process = std::move(later.process);
}

}  // namespace

RunTraces collect_run(fs::path const& run) {
  RunTraces traces;
  auto const files = rank_files(run, traces.remarks);
  if (files.empty() && traces.remarks.empty())
    throw Error(ExitCode::bad_data, "no trace under " + run.string(),
                "expected trace/a0/rank-0000.h5 and so on",
                "name a run directory, as `stratagem run --out` wrote it");
  std::map<int, RankTrace> by_rank;
  for (auto const& file : files) {
    try {
      auto trace = read_own(file);
      if (!trace.closed_cleanly)
        traces.remarks.push_back(str(file.path.string(),
                                     " was not closed: its rank was killed or still runs; ",
                                     trace.table(steps_table()).rows, " steps were read"));
      auto const known = by_rank.find(file.rank);
      if (known == by_rank.end()) {
        by_rank.emplace(file.rank, std::move(trace));
      } else if (auto const both = difference(known->second, trace); !both.empty()) {
        traces.remarks.push_back(str("left out: ", known->second.path.string(),
                                     ": its attempt and the next are of different runs, ", both));
        known->second = std::move(trace);
      } else {
        join_attempt(known->second, std::move(trace));
      }
    } catch (Error const& error) {
      traces.remarks.push_back(str("left out: ", error.what()));
    } catch (std::bad_alloc const&) {
      traces.remarks.push_back(
          str("left out: ", file.path.string(), " takes more memory than there is"));
    }
  }
  if (by_rank.empty())
    throw Error(ExitCode::bad_data, "no usable trace under " + run.string(),
                join(traces.remarks, "; "));
  for (auto& [_, trace] : by_rank) traces.ranks.push_back(std::move(trace));
  auto const world = world_of(traces.ranks.front());
  traces.world = world;
  std::int64_t missing = 0;
  for (int rank = 0; rank < world; ++rank)
    if (!by_rank.contains(rank) && ++missing <= most_missing_named)
      traces.remarks.push_back(str("rank ", rank, " of ", world, " has no trace"));
  if (missing > most_missing_named)
    traces.remarks.push_back(str("and ", missing - most_missing_named, " more have none"));
  return traces;
}

namespace {

void write_archive(RunTraces const& traces, fs::path const& path) {
  h5::FileWriter file(path, h5::FileWriter::Mode::archive);
  file.set_attribute("/", "schema_name", std::string(collected_schema_name));
  file.set_attribute("/", "schema_version", schema_version);
  file.set_attribute("/", "created_utc", utc_time(wall_ns()));
  for (auto const& trace : traces.ranks) {
    auto const group = "/" + rank_label(trace.rank());
    file.create_group(group);
    file.set_attribute(group, "closed_cleanly", std::int64_t{trace.closed_cleanly});
    for (auto const& [name, attributes] :
         {std::pair{"/provenance", &trace.provenance}, {"/process", &trace.process}}) {
      file.create_group(group + name);
      for (auto const& [key, value] : *attributes) file.set_attribute(group + name, key, value);
    }
    for (auto spec : tables()) {
      auto const& table = trace.table(spec);
      spec.path = group + spec.path;
      auto writer = file.create_table(spec);
      std::vector<h5::ColumnData> columns;
      for (auto const& column : spec.columns) columns.push_back(table.columns.at(column.name));
      writer.append(columns);
      writer.close();
    }
  }
  file.close();
}

}  // namespace

void require_replaceable(RunTraces const& traces, fs::path const& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return;
  auto const refuse = [&](std::string const& what) {
    throw Error(ExitCode::usage, str(path.string(), " is there already, and ", what), {},
                "name another file, or remove it");
  };
  try {
    h5::FileReader const file(path);
    if (file.attribute("/", "schema_name") !=
        h5::AttributeValue(std::string(collected_schema_name)))
      return refuse("is no file of collected traces");
    auto const& first = traces.ranks.front();
    auto const config = file.attribute("/" + rank_label(first.rank()) + "/provenance", "config");
    auto const own = first.provenance.find("config");
    if (config && own != first.provenance.end() && *config != own->second)
      refuse("has the traces of another run");
  } catch (h5::Hdf5Error const&) {
    refuse("is no file of collected traces");
  }
}

void write_collected(RunTraces const& traces, fs::path const& path) {
  require_regular_or_none(path);
  fs::path const temporary = str(path.string(), ".tmp.", ::getpid());
  std::error_code failed, ignored;
  fs::remove(temporary, ignored);
  try {
    write_archive(traces, temporary);
  } catch (Error const&) {
    fs::remove(temporary, ignored);
    throw;
  }
  fs::rename(temporary, path, failed);
  if (!failed) return;
  fs::remove(temporary, ignored);
  throw Error(ExitCode::io, "cannot write " + path.string(), failed.message());
}

}  // namespace stratagem::trace
