#include "trace/collect.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>

#include "app/commands/collect_study.hpp"
#include "app/configuration.hpp"
#include "app/options.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "study/run_facts.hpp"
#include "study/study_directory.hpp"
#include "study/study_table.hpp"
#include "study/summary.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// The run that `path`, a trace file or a folder of them, belongs to; empty where it is neither.
fs::path run_around(fs::path const& path) {
  auto const whole = fs::absolute(path).lexically_normal();
  for (auto at = whole; at.has_relative_path(); at = at.parent_path()) {
    std::error_code unknown;
    if (at.filename() == "trace" && fs::is_directory(at, unknown))
      return fs::proximate(at.parent_path(), unknown);
  }
  return {};
}

std::string what_to_name(fs::path const& path, std::string const& otherwise) {
  auto const run = run_around(path);
  return run.empty() ? otherwise : "name the run: `stratagem collect " + run.string() + "`";
}

/// It holds traces, or says how it ended before there were any.
bool is_run(fs::path const& path) {
  std::error_code failed;
  return fs::is_directory(path / "trace", failed) || fs::exists(path / "outcome.json", failed);
}

/// DIR itself when it is a run's, else the run directories in it, by name.
std::vector<fs::path> runs_under(fs::path const& directory) {
  std::error_code failed;
  if (!fs::is_directory(directory, failed))
    throw Error(ExitCode::usage, directory.string() + " is not a directory", {},
                what_to_name(directory, "name a run directory, or one that holds some"));
  if (is_run(directory)) return {directory};
  std::vector<fs::path> runs;
  for (auto const& entry : fs::directory_iterator(directory, failed))
    if (is_run(entry.path())) runs.push_back(entry.path());
  std::sort(runs.begin(), runs.end());
  if (runs.empty())
    throw Error(ExitCode::bad_data, "no trace under " + directory.string(),
                "expected trace/a0/rank-0000.h5 and so on",
                what_to_name(directory, "name a run directory, as `stratagem run --out` wrote it"));
  return runs;
}

/// By its name, it is to hold a table.
bool is_table_file(fs::path const& file) {
  constexpr std::array<std::string_view, 5> endings{".csv", ".json", ".md", ".tex", ".txt"};
  return std::ranges::count(endings, file.extension().native()) > 0;
}

std::string name_of_run(fs::path const& run) {
  auto const clean = fs::absolute(run).lexically_normal();
  return clean.has_filename() ? clean.filename().string() : clean.parent_path().filename().string();
}

/// What cells.csv would say of it; of a run whose configuration cannot be read, its name alone.
CellEntry entry_of(fs::path const& run, RunFacts const& facts) {
  CellEntry entry{.name = name_of_run(run), .group = name_of_run(run)};
  try {
    auto const file = run / "config.yaml";
    auto const config = parse_config(read_text(file, ExitCode::io), file.string(), {},
                                     known_names(), process_variable);
    entry.workers = facts.ranks - servers_of(config.strategy);
    describe(entry, config);
    entry.group = str(facts.ranks, " ranks");
    for (auto const& [path, value] : deciding_settings(config)) {
      auto const content = facts.contents.find(path);  // the same wherever the files were
      bool const is_known = content != facts.contents.end() && !value.empty();
      entry.group += str(", ", path, "=", is_known ? content->second : value);
    }
  } catch (Error const&) {
    return entry;
  }
  return entry;
}

/// The state of a run that left no outcome.json.
CellState state_by_traces(RunSummary const& summary) {
  if (summary.status == "complete") return CellState::complete;
  if (summary.status == "stopped") return CellState::saved;
  return summary.status == "failed" ? CellState::failed : CellState::lost;
}

/// What is read of all runs that were named. One that cannot be read does not hide the others.
class Collection {
 public:
  Collection(bool alone, Log& log) : alone_(alone), log_(log) {}

  /// Calls `read`; of several directories, one that fails is left out with a warning.
  template <class Read>
  void attempt(Read const& read) {
    try {
      read();
    } catch (Error const& error) {
      if (alone_) throw;
      log_.warning(str("left out: ", error.what()));
      if (!first_failure_) first_failure_ = error;
    }
  }

  /// Of a run without traces, how it stands.
  void add_state(fs::path const& run) { add(run, read_run_facts(run), std::nullopt); }

  /// `output`: the collected file; empty: none.
  void add(fs::path const& run, fs::path const& output, bool must_write) {
    auto const traces = trace::collect_run(run);
    for (auto const& remark : traces.remarks) log_.warning(remark);
    if (must_write) trace::require_replaceable(traces, output);
    if (!output.empty()) write(traces, output, must_write);
    auto const facts = read_run_facts(run);
    if (!facts.problem.empty()) log_.warning(without_manifest(run, facts));
    add(run, facts, summarise(name_of_run(run), traces, facts));
  }

  std::string render(std::string const& format) const {
    if (results_.empty() && first_failure_) throw *first_failure_;
    if (format == "json") return study_json(results_);
    std::vector<RunSummary> summaries;
    for (auto const& result : results_) summaries.push_back(*result.summary);
    if (format != "text") return summary_table(summaries).render(table_format(format));
    return summary_text(summaries) + "\nmean over the steps of each rank\n" +
           phase_table(summaries).render();
  }

 private:
  void add(fs::path const& run, RunFacts const& facts, std::optional<RunSummary> summary) {
    CellResult result{.entry = entry_of(run, facts),
                      .status = status_of_run(run),
                      .summary = std::move(summary),
                      .directory = run.string(),
                      .git_sha = facts.commit};
    result.entry.index = static_cast<int>(results_.size());
    if (result.summary) {
      if (!result.status.outcome && !result.status.launch)
        result.status.state = state_by_traces(*result.summary);
      result.summary->status = name_of(result.status.state);
    }
    results_.push_back(std::move(result));
  }

  void write(trace::RunTraces const& traces, fs::path const& output, bool must_write) const {
    try {
      trace::write_collected(traces, output);
      log_.info("wrote " + output.string());
    } catch (Error const& error) {
      if (must_write) throw;
      log_.warning(str(output.string(), " was not written: ", error.what()));
    }
  }

  bool alone_;
  Log& log_;
  std::optional<Error> first_failure_;
  std::vector<CellResult> results_;
};

}  // namespace

void declare_collect(Options& options) {
  options.add_word({.name = "DIR",
                    .meaning = "a run directory, a study directory, or a folder of runs",
                    .repeats = true});
  auto formats = table_formats();
  formats.emplace_back("json");
  options.add({.name = "output",
               .letter = 'o',
               .value = "FILE",
               .meaning =
                   "of a single run: the collected file, else collected.h5 in its directory; of a "
                   "study: the table"});
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = formats,
               .fallback = "text",
               .meaning = "of the table"});
  options.add({.name = "no-write",
               .meaning = "show the table alone: no collected.h5, summary.csv, measures.json"});
  options.add({.name = "allow-mixed",
               .meaning = "of a study: also where cells were run by different programs; the table "
                          "marks them"});
  options.add_example("stratagem collect runs/digits-lenet-ddp",
                      "write collected.h5 and show the table of one run");
  options.add_example("stratagem collect runs/study-mini --format latex",
                      "the table of a study, over its seeds");
}

ExitCode execute_collect(Options const& options) {
  auto const format = options.text("format");
  auto const common = options.common();
  Log log(0, true, common.level, common.color);
  auto const& directories = options.words();
  bool const writes = !options.flag("no-write");
  fs::path const output = options.has("output") ? options.text("output") : "";
  if (directories.size() == 1 && StudyDirectory::is_one(directories.front()))
    return collect_study(directories.front(),
                         {.format = format,
                          .output = output,
                          .allow_mixed = options.flag("allow-mixed"),
                          .writes = writes},
                         log);
  if (!output.empty() && !writes)
    throw Error(ExitCode::usage, "-o and --no-write contradict each other");
  if (is_table_file(output))
    throw Error(ExitCode::usage,
                "-o " + output.string() + " would be HDF5: it is the collected file of a run",
                "the table is printed", "write `> " + output.string() + "` instead of -o");
  Collection collection(directories.size() == 1, log);
  std::vector<fs::path> runs;
  for (auto const& directory : directories)
    collection.attempt([&] { std::ranges::move(runs_under(directory), std::back_inserter(runs)); });
  if (!output.empty() && runs.size() > 1)
    throw Error(ExitCode::usage, "-o names one file, but there are several runs");
  for (auto const& run : runs)
    collection.attempt([&] {
      if (format == "json" && !fs::exists(run / "trace")) return collection.add_state(run);
      collection.add(run,
                     !writes          ? fs::path{}
                     : output.empty() ? run / "collected.h5"
                                      : output,
                     !output.empty());
    });
  std::cout << collection.render(format);
  return ExitCode::done;
}

}  // namespace stratagem::app
