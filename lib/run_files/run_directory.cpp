#include "run_files/run_directory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/free_name.hpp"
#include "base/files/time_name.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "run_files/folder_permissions.hpp"
#include "run_files/outcome.hpp"
#include "run_files/run_owner.hpp"
#include "trace/rank_trace.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr char lock_name[] = ".lock";

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
                       name == lock_name || name == "metrics.csv" || name == ".outcome.reserve" ||
                       name.starts_with("config.yaml") || name.starts_with("manifest.json") ||
                       name.starts_with("outcome.json.tmp.");
    if (!known) return false;
    any = any || name == "trace";
  }
  return any;
}

fs::path move_aside(fs::path const& path) {
  auto aside = path;
  aside += ".old-" + time_name(wall_ns());
  aside = free_name(aside);
  std::error_code failed;
  fs::rename(path, aside, failed);
  if (failed)
    throw Error(ExitCode::io, "cannot move " + path.string() + " aside", failed.message());
  return aside;
}

[[noreturn]] void refuse(fs::path const& path, std::string const& why, std::string const& cure) {
  throw Error(ExitCode::usage, "run directory " + path.string() + " is taken", why, cure);
}

bool holds_nothing(fs::path const& path) {
  std::error_code ignored;
  fs::directory_iterator const entries(path, ignored);
  return std::all_of(begin(entries), end(entries),
                     [](auto const& entry) { return entry.path().filename() == lock_name; });
}

/// Refuses what `existing` does not allow for. True when it is to be resumed and has come to its
/// end. An unfinished run may be under way: only who has the lock can tell.
bool is_complete(fs::path const& path, Existing existing, bool locked) {
  std::error_code ignored;
  bool const exists = fs::exists(path, ignored);
  if (exists && !fs::is_directory(path, ignored))
    refuse(path, "it is a file", "name a folder with --out");
  auto const outcome = read_outcome(path);
  if (outcome && alive(*outcome))
    refuse(path, str("process ", outcome->process, " on ", outcome->host, " writes it"),
           "wait for it, or name another with --out");
  if (existing == Existing::overwrite) return false;
  if (outcome && outcome->status == RunStatus::complete) {
    if (existing == Existing::refuse)
      refuse(path, "it holds a COMPLETE run",
             "--resume with more epochs trains it further, --overwrite moves it aside, --out names "
             "another");
    return existing == Existing::resume;
  }
  if (locked && (outcome || hardly_begun(path)) && existing == Existing::refuse)
    refuse(path, "it holds an unfinished run",
           "continue with --resume, or --overwrite moves it aside");
  if (!outcome && exists && !holds_nothing(path) && !hardly_begun(path))
    refuse(path, "it holds something that is no run", "name another with --out");
  return false;
}

std::shared_ptr<DirectoryLock const> lock_of(fs::path const& path) {
  try {
    return std::make_shared<DirectoryLock const>(path / lock_name);
  } catch (LockedError const& locked) {
    refuse(path, locked.holder() + " writes it", "wait for it, or name another with --out");
  }
}

}  // namespace

void make_folder(fs::path const& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed)
    throw Error(ExitCode::io, "cannot create " + path.string(), failed.message(),
                "name a writable folder with --out");
}

bool RunDirectory::is_there() const {
  std::error_code failed;
  return fs::is_directory(path, failed) && (!lock || lock->is_in(path));
}

fs::path RunDirectory::trace_file(int rank) const {
  return trace_folder() / (trace::rank_label(rank) + ".h5");
}

fs::path RunDirectory::log_file(int rank) const {
  return rank == 0 ? path / "log.txt" : path / "logs" / (trace::rank_label(rank) + ".log");
}

RunDirectory claim_run_directory(fs::path const& path, Existing existing) {
  require_own_folder(path);
  RunDirectory const complete{.path = fs::absolute(path), .already_complete = true};
  if (is_complete(path, existing, false)) return complete;
  std::error_code ignored;
  bool const was_there = fs::exists(path, ignored);
  make_own_folder(path);
  auto lock = lock_of(path);
  // Another process may have had it until now.
  if (is_complete(path, existing, true)) return complete;
  if (existing == Existing::overwrite && (was_there || !holds_nothing(path))) {
    move_aside(path);
    make_own_folder(path);
    lock = lock_of(path);
  }
  return {.path = fs::absolute(path), .attempt = next_attempt(path), .lock = std::move(lock)};
}

void begin_attempt(RunDirectory const& directory) {
  make_folder(directory.path / "trace");
  make_folder(directory.path / "logs");
  auto const folder = directory.trace_folder();
  if (::mkdir(folder.c_str(), S_IRWXU | S_IRWXG | S_IRWXO) == 0) return;
  int const reason = errno;
  if (reason == EEXIST)
    refuse(directory.path, str("another process has just begun attempt ", directory.attempt),
           "wait for it, or name another with --out");
  throw Error(ExitCode::io, "cannot create " + folder.string(), std::strerror(reason),
              "name a writable folder with --out");
}

}  // namespace stratagem
