#include "trace/validate.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <new>

#include "app/options.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "h5/trial.hpp"
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

std::vector<trace::RankTrace> read_once(fs::path const& file) {
  if (trace::schema_of(file) == trace::collected_schema_name)
    return trace::read_collected_trace(file);
  return {trace::read_rank_trace(file)};
}

std::vector<trace::RankTrace> read(fs::path const& file) {
  h5::try_in_child(file, [&] { read_once(file); });
  return read_once(file);
}

/// A rank's own file is known by its name.
bool has_name_of(trace::RankTrace const& rank, fs::path const& file) {
  auto const name = file.stem().string();
  return !rank.group.empty() || !name.starts_with("rank-") ||
         name == trace::rank_label(rank.rank());
}

/// What is wrong with one file, a line each.
std::vector<std::string> problems_in(fs::path const& file) {
  std::vector<std::string> problems;
  try {
    for (auto const& rank : read(file)) {
      if (!has_name_of(rank, file))
        problems.push_back(str("it holds the trace of rank ", rank.rank()));
      for (auto const& problem : trace::problems_of(rank))
        problems.push_back(str("rank ", rank.rank(), ": ", problem));
    }
  } catch (Error const& error) {
    problems.push_back(error.what());
  } catch (std::bad_alloc const&) {
    problems.push_back("it takes more memory than there is");
  }
  return problems;
}

}  // namespace

void declare_validate(Options& options) {
  options.add_word(
      {.name = "FILE|DIR", .meaning = "a trace file or a run directory", .repeats = true});
  options.add_example("stratagem validate runs/digits-lenet-ddp", "every trace file of a run");
}

ExitCode execute_validate(Options const& options) {
  auto const& paths = options.words();
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
