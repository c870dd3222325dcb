#include "train/run_directory.hpp"

#include <algorithm>
#include <system_error>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "trace/rank_trace.hpp"
#include "train/folder_safety.hpp"
#include "train/outcome.hpp"
#include "train/owner.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

int next_attempt(fs::path const& path) {
  int next = 0;
  std::error_code ignored;
  for (auto const& entry : fs::directory_iterator(path / "trace", ignored)) {
    auto const name = entry.path().filename().string();
    if (auto const number = name.starts_with("a") ? parse_integer(name.substr(1)) : std::nullopt)
      next = std::max(next, static_cast<int>(*number) + 1);
  }
  return next;
}

/// True while the process that writes the directory lives, as far as this host can tell.
bool alive(Outcome const& outcome) {
  if (outcome.status != RunStatus::running) return false;
  if (outcome.host == host_name()) return owner_lives(outcome);
  return wall_ns() - outcome.updated_wall_ns < 30'000'000'000;
}

/// True when there is nothing but what a run makes before its first outcome.json, and something.
bool hardly_begun(fs::path const& path) {
  std::error_code ignored;
  bool any = false;
  for (auto const& entry : fs::directory_iterator(path, ignored)) {
    auto const name = entry.path().filename().string();
    bool const known = name == "trace" || name == "logs" || name == "log.txt" ||
                       name == "metrics.csv" || name == ".outcome.reserve" ||
                       name.starts_with("config.yaml") || name.starts_with("manifest.json") ||
                       name.starts_with("outcome.json.tmp.");
    if (!known) return false;
    any = any || name == "trace";
  }
  return any;
}

fs::path move_aside(fs::path const& path) {
  auto aside = path;
  aside += ".old-" + utc_time(wall_ns());
  std::error_code failed;
  fs::rename(path, aside, failed);
  if (failed)
    throw Error(ExitCode::io, "cannot move " + path.string() + " aside", failed.message());
  return aside;
}

[[noreturn]] void refuse(fs::path const& path, std::string const& why, std::string const& cure) {
  throw Error(ExitCode::usage, "run directory " + path.string() + " is taken", why, cure);
}

}  // namespace

void make_folder(fs::path const& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed)
    throw Error(ExitCode::io, "cannot create " + path.string(), failed.message(),
                "name a writable folder with --out");
}

fs::path RunDirectory::trace_file(int rank) const {
  return trace_folder() / (trace::rank_label(rank) + ".h5");
}

fs::path RunDirectory::log_file(int rank) const {
  return rank == 0 ? path / "log.txt" : path / "logs" / (trace::rank_label(rank) + ".log");
}

RunDirectory claim_run_directory(fs::path const& path, Existing existing) {
  RunDirectory directory{.path = path};
  std::error_code ignored;
  require_own_folder(path);
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored))
    refuse(path, "it is a file", "name a folder with --out");
  auto const outcome = read_outcome(path);
  if (outcome && alive(*outcome))
    refuse(path, str("process ", outcome->process, " on ", outcome->host, " writes it"),
           "wait for it, or name another with --out");
  if (existing == Existing::overwrite && fs::exists(path, ignored)) {
    move_aside(path);
  } else if (outcome && outcome->status == RunStatus::complete) {
    if (existing == Existing::refuse)
      refuse(path, "it holds a COMPLETE run",
             "name another with --out, or --overwrite moves it aside");
    directory.already_complete = true;
    return directory;
  } else if ((outcome || hardly_begun(path)) && existing == Existing::refuse) {
    refuse(path, "it holds an unfinished run",
           "go on with --resume, or --overwrite moves it aside");
  } else if (!outcome && fs::exists(path, ignored) && !fs::is_empty(path, ignored) &&
             !hardly_begun(path)) {
    refuse(path, "it holds something that is no run", "name another with --out");
  }
  directory.attempt = next_attempt(path);
  make_own_folder(path);
  make_folder(directory.trace_folder());
  make_folder(path / "logs");
  return directory;
}

}  // namespace stratagem
