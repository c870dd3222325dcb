#include "app/commands/collect_study.hpp"

#include <algorithm>
#include <iostream>
#include <map>

#include "app/options.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "study/run_facts.hpp"
#include "study/study_table.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// The lines of a configuration that bear on its results.
std::vector<std::string> settings_in(fs::path const& file) {
  std::vector<std::string> lines;
  for (auto& line : split(read_text(file, ExitCode::io), '\n')) {
    auto const key = trim(line);
    if (!key.starts_with("out:") && !key.starts_with("root:")) lines.push_back(std::move(line));
  }
  return lines;
}

bool has_same_config(StudyDirectory const& study, std::string const& cell) {
  auto const ran = study.run_directory(cell) / "config.yaml", given = study.config_file(cell);
  std::error_code ignored;
  if (!fs::exists(ran, ignored)) return true;
  return fs::exists(given, ignored) && settings_in(ran) == settings_in(given);
}

/// Writes beside what it reads, where that can be done.
class Writer {
 public:
  Writer(bool writes, Log& log) : writes_(writes), log_(log) {}

  template <class Write>
  void write(Write const& action) {
    if (!writes_) return;
    try {
      action();
      ++written_;
    } catch (Error const& error) {
      if (failed_++ == 0) first_failure_ = error.what();
    }
  }

  void tell() const {
    if (written_ > 0)
      log_.info(str("wrote ", written_, written_ == 1 ? " file: " : " files: ",
                    "collected.h5 of each cell with traces, summary.csv and measures.json"));
    if (failed_ > 0)
      log_.warning(str(failed_, failed_ == 1 ? " file was" : " files were",
                       " not written, of collected.h5 in cells, summary.csv and measures.json: ",
                       first_failure_));
  }

 private:
  bool writes_;
  Log& log_;
  int written_ = 0, failed_ = 0;
  std::string first_failure_;
};

CellResult result_of(StudyDirectory const& study, CellEntry const& entry, Writer& writer,
                     Log& log) {
  auto const run = study.run_directory(entry.name);
  auto const facts = read_run_facts(run);
  CellResult result{.entry = entry,
                    .status = status_of(study, entry.name),
                    .summary = {},
                    .directory = run.string(),
                    .git_sha = facts.commit,
                    .same_config = has_same_config(study, entry.name),
                    .files = facts.files};
  std::error_code ignored;
  if (!fs::is_directory(run / "trace", ignored)) return result;
  try {
    auto const traces = trace::collect_run(run);
    for (auto const& remark : traces.remarks) log.warning(entry.name + ": " + remark);
    writer.write([&] { trace::write_collected(traces, run / "collected.h5"); });
    if (!facts.problem.empty()) log.warning(without_manifest(run, facts));
    result.summary = summarise(entry.name, traces, facts);
  } catch (Error const& error) {
    log.warning(entry.name + ": " + error.what());
  }
  return result;
}

/// What forbids to compare the cells; empty: nothing.
std::string why_mixed(std::vector<CellResult> const& cells) {
  auto const commits = commits_of(cells);
  if (commits.size() > 1) return "their programs are of commits " + join(commits, " and ");
  auto const other = std::ranges::find(cells, false, &CellResult::same_config);
  if (other != cells.end())
    return other->entry.name + " was run with another configuration than the study's";
  std::map<std::string, CellResult const*> first;
  for (auto const& cell : cells)
    for (auto const& [file, content] : cell.files)
      if (auto const* before = first.try_emplace(file, &cell).first->second;
          before->files.at(file) != content)
        return str(before->entry.name, " and ", cell.entry.name, " read other content from ", file);
  return {};
}

std::string render(std::vector<CellResult> const& cells, StudyDirectory const& study,
                   std::string const& format, bool mixed) {
  if (format == "json") return study_json(cells);
  auto const as = table_format(format);
  if (as == TableFormat::csv) return study_numbers(cells, mixed).render(as);
  auto table = study_table(cells, mixed);
  table.set_note(about_study_table);
  auto const missing = missing_table(cells, study);
  return table.render(as) + (missing.empty() ? "" : "\n" + missing.render(as));
}

}  // namespace

ExitCode collect_study(fs::path const& directory, StudyTableRequest const& request, Log& log) {
  auto const study = StudyDirectory::open(directory);
  Writer writer(request.writes, log);
  std::vector<CellResult> cells;
  for (auto const& entry : study.cells()) cells.push_back(result_of(study, entry, writer, log));
  auto const mixed = why_mixed(cells);
  if (!mixed.empty() && !request.allow_mixed)
    throw Error(ExitCode::usage, "the cells of " + directory.string() + " cannot be compared",
                mixed, "repeat the older ones, or take --allow-mixed, which marks them");
  writer.write([&] { replace_file(study.summary_file(), summary_csv(cells)); });
  writer.write([&] { replace_file(study.measures_file(), study_json(cells)); });
  writer.tell();
  auto const table = render(cells, study, request.format, !mixed.empty());
  if (request.output.empty()) {
    std::cout << table;
  } else {
    replace_file(request.output, table);
    log.info("wrote the table to " + request.output.string());
  }
  if (std::ranges::none_of(cells, [](auto const& cell) { return cell.is_complete(); }))
    throw Error(ExitCode::cells_missing, "no cell of " + directory.string() + " is complete", {},
                "see `stratagem status " + directory.string() + "`");
  return ExitCode::done;
}

}  // namespace stratagem::app
