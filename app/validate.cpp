#include "trace/validate.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <new>

#include "app/limits.hpp"
#include "app/options.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "trace/rank_trace.hpp"
#include "trace/schema.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> trace_files(fs::path const& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return {path};
  std::vector<fs::path> files;
  for (auto const& entry : fs::recursive_directory_iterator(path, failed))
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw Error(ExitCode::bad_data, "no .h5 file under " + path.string());
  return files;
}

std::vector<trace::RankTrace> read(fs::path const& file) {
  if (trace::schema_of(file) == trace::collected_schema_name)
    return trace::read_collected_trace(file);
  return {trace::read_rank_trace(file)};
}

/// What is wrong with one file, a line each.
std::vector<std::string> problems_in(fs::path const& file) {
  std::vector<std::string> problems;
  try {
    for (auto const& rank : read(file))
      for (auto const& problem : trace::problems_of(rank))
        problems.push_back(str("rank ", rank.rank(), ": ", problem));
  } catch (Error const& error) {
    problems.push_back(error.what());
  } catch (std::bad_alloc const&) {
    problems.push_back("it takes more memory than there is");
  }
  return problems;
}

}  // namespace

ExitCode execute_validate(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("path", -1);
  if (!options.parse(arguments)) return ExitCode::done;
  auto const paths = options.texts("path");
  if (paths.empty())
    throw Error(ExitCode::usage, "validate what?", {}, "name a trace file or a run directory");
  limit_for_reading(paths);
  int bad = 0, good = 0;
  for (auto const& path : paths)
    for (auto const& file : trace_files(path)) {
      auto const problems = problems_in(file);
      ++(problems.empty() ? good : bad);
      std::cout << file.string() << (problems.empty() ? ": good\n" : ": BAD\n");
      for (auto const& problem : problems) std::cout << "  " << problem << '\n';
    }
  if (bad == 0) return ExitCode::done;
  throw Error(ExitCode::bad_data, str(bad, " of ", bad + good, " files are not valid"),
              "see above");
}

}  // namespace stratagem::app
