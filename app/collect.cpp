#include "trace/collect.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "app/collect_study.hpp"
#include "app/limits.hpp"
#include "app/options.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "study/study_directory.hpp"
#include "study/summary.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// DIR itself when it holds traces, else the run directories in it, by name.
std::vector<fs::path> runs_under(fs::path const& directory) {
  std::error_code failed;
  if (!fs::is_directory(directory, failed))
    throw Error(ExitCode::usage, directory.string() + " is no directory", {},
                "name a run directory, or one that holds some");
  if (fs::is_directory(directory / "trace", failed)) return {directory};
  std::vector<fs::path> runs;
  for (auto const& entry : fs::directory_iterator(directory, failed))
    if (fs::is_directory(entry.path() / "trace", failed)) runs.push_back(entry.path());
  std::sort(runs.begin(), runs.end());
  if (runs.empty())
    throw Error(ExitCode::bad_data, "no trace under " + directory.string(),
                "expected trace/a0/rank-0000.h5 and so on",
                "name a run directory, as `stratagem run --out` wrote it");
  return runs;
}

std::string name_of_run(fs::path const& run) {
  auto const clean = fs::absolute(run).lexically_normal();
  return clean.has_filename() ? clean.filename().string() : clean.parent_path().filename().string();
}

}  // namespace

ExitCode execute_collect(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("directory", -1);
  options.add()("output,o", text_value(),
                "the collected file of a single run; else collected.h5 in its directory")(
      "format", text_value("text"), "of the table: text, md, csv, latex or json")(
      "allow-mixed", flag_value(),
      "of a study: also where cells were run by different programs; the table marks them");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const format = options.text("format");
  if (format != "json") static_cast<void>(table_format(format));
  auto const common = options.common();
  Log log(0, true, common.level, common.color);
  auto const directories = options.texts("directory");
  limit_for_reading(directories);
  if (directories.size() == 1 && StudyDirectory::is_one(directories.front()))
    return collect_study(directories.front(), format, options.flag("allow-mixed"), log);
  std::vector<fs::path> runs;
  for (auto const& directory : directories)
    for (auto& run : runs_under(directory)) runs.push_back(std::move(run));
  if (runs.empty()) throw Error(ExitCode::usage, "collect what?", {}, "name a run directory");
  if (options.has("output") && runs.size() > 1)
    throw Error(ExitCode::usage, "-o names one file, but there are several runs");

  std::vector<RunSummary> summaries;
  PhaseTable phases;
  for (auto const& run : runs) {
    auto const traces = trace::collect_run(run);
    for (auto const& remark : traces.remarks) log.warning(remark);
    fs::path const output =
        options.has("output") ? fs::path(options.text("output")) : run / "collected.h5";
    trace::write_collected(traces, output);
    log.info("wrote " + output.string());
    summaries.push_back(summarise(name_of_run(run), traces));
    phases.add(name_of_run(run), traces);
  }
  if (format == "json")
    std::cout << summary_json(summaries);
  else if (format == "text")
    std::cout << summary_text(summaries) << "\nmean over the steps of each rank\n"
              << phases.render();
  else
    std::cout << summary_table(summaries).render(table_format(format));
  return ExitCode::done;
}

}  // namespace stratagem::app
