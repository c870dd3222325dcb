#include "study/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>

#include <unistd.h>

#include "base/console/terminal.hpp"
#include "base/error.hpp"
#include "base/files/directory_lock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "study/held_signals.hpp"

namespace stratagem {
namespace {

std::string model_key(CellEntry const& cell) {
  return "model " + cell.part + " " + cell.model;
}

void warn_without_lock(DirectoryLock const& lock, Log& log) {
  if (!lock.is_held())
    log.warning("the file system has no locks: make sure that no other sweep runs here");
}

std::string end_of(CellRun const& run) {
  auto text = str(name_of(run.status.state), " after ", format_duration(run.seconds));
  auto const& outcome = run.status.outcome;
  if (run.status.state == CellState::complete && outcome) {
    if (std::isfinite(outcome->test_accuracy))
      text += str(", accuracy ", format_number(100 * outcome->test_accuracy, 2), " %");
    if (outcome->reason == "time_limit") text += ", at its time limit";
  } else {
    text +=
        str(": ", split(run.status.reason, '\n').front(), " (code ", to_int(run.status.code), ")");
  }
  return text;
}

/// One sweep over many cells.
class Sweep {
 public:
  Sweep(StudyDirectory const& study, CellStart const& start, ProgressStyle style, Log& log)
      : study_(study), start_(start), log_(log) {
    bool const terminal = shows_to_person(STDERR_FILENO);
    redraws_ = style == ProgressStyle::bar || (style == ProgressStyle::automatic && terminal);
    quiet_ = style == ProgressStyle::none;
  }

  ExitCode run(std::vector<Cell> const& cells) {
    DirectoryLock const lock(study_.lock_file());
    warn_without_lock(lock, log_);
    take_stock(cells);
    HeldSignals held;
    int signal = 0;
    while (!open_.empty() && signal == 0) {
      auto const& cell = *open_.front();
      show_current(cell);
      open_.erase(open_.begin());
      signal = run_one(cell, cells.size());
      if (signal == 0) signal = held.take();
    }
    return tell_end(signal, cells.size());
  }

 private:
  /// The remaining cells, and how long such cells took elsewhere.
  void take_stock(std::vector<Cell> const& cells) {
    for (auto const& cell : cells) {
      if (is_complete(study_, cell)) {
        auto const status = status_of(study_, cell.entry.name);
        ++complete_;
        if (status.launch) estimate_.add(cell.entry, status.launch->seconds);
      } else {
        open_.push_back(&cell);
      }
    }
    if (complete_ > 0 && !quiet_)
      log_.info(str(complete_, " of ", cells.size(), " cells are complete already"));
  }

  /// "  left 12m03s", as soon as that is known.
  std::string left() const {
    double seconds = 0;
    for (auto const* cell : open_) seconds += estimate_.of(cell->entry);
    return std::isfinite(seconds) && !open_.empty() ? "  left " + format_whole_seconds(seconds)
                                                    : "";
  }

  void show_current(Cell const& cell) const {
    if (!redraws_ || quiet_) return;
    auto const text = cell.entry.name + " ..." + left();
    int const room = terminal_columns(STDERR_FILENO) - 1;
    std::fprintf(stderr, "\r\033[K%.*s", room > 0 ? room : -1, text.c_str());
    std::fflush(stderr);
  }

  void say(std::string const& text) const {
    if (quiet_) return;
    if (redraws_) std::fprintf(stderr, "\r\033[K");
    log_.info(text);
  }

  /// The signal that came meanwhile, or 0.
  int run_one(Cell const& cell, std::size_t total) {
    auto const place = str("[", complete_ + failed_ + 1, "/", total, "] ", cell.entry.name, "  ");
    try {
      DirectoryLock const lock(study_.lock_file(cell.entry.name));
      auto const run = run_cell(study_, cell, start_);
      bool const complete = run.status.state == CellState::complete;
      ++(complete ? complete_ : failed_);
      if (complete) estimate_.add(cell.entry, run.seconds);
      say(place + end_of(run) + left());
      return run.signal;
    } catch (Error const& error) {
      if (error.code() == ExitCode::environment) throw;  // the launcher: no other cell would start
      ++failed_;
      say(place + "not run: " + error.what());
      return 0;
    }
  }

  ExitCode tell_end(int signal, std::size_t total) const {
    auto const cure = "see `stratagem status " + study_.path().string() + "`";
    if (signal != 0) {
      log_.warning(str("signal ", signal, " ended the sweep, ", open_.size(), " of ", total,
                       " cells were not started; the same command continues"));
      return signal == SIGTERM ? ExitCode::unexpected : ExitCode::saved;
    }
    if (failed_ == 0) return ExitCode::done;
    log_.error(str(failed_, " of ", total, " cells are not complete; ", cure));
    return ExitCode::cells_missing;
  }

  StudyDirectory const& study_;
  CellStart const& start_;
  Log& log_;
  bool redraws_ = false, quiet_ = false;
  std::vector<Cell const*> open_;  ///< not run yet, in order
  TimeEstimate estimate_;
  std::size_t complete_ = 0, failed_ = 0;
};

}  // namespace

void TimeEstimate::add(CellEntry const& cell, double seconds) {
  for (auto const& key : {"group " + cell.group, model_key(cell), std::string("all")}) {
    means_[key].sum += seconds;
    ++means_[key].count;
  }
}

double TimeEstimate::of(CellEntry const& cell) const {
  for (auto const& key : {"group " + cell.group, model_key(cell), std::string("all")})
    if (auto const mean = means_.find(key); mean != means_.end())
      return mean->second.sum / mean->second.count;
  return std::nan("");
}

ExitCode sweep_one(StudyDirectory const& study, Cell const& cell, CellStart const& start,
                   Log& log) {
  DirectoryLock const lock(study.lock_file(cell.entry.name));
  warn_without_lock(lock, log);
  if (is_complete(study, cell)) {
    log.info(cell.entry.name + " is complete: nothing to do");
    return ExitCode::done;
  }
  auto const run = run_cell(study, cell, start);
  auto const text = cell.entry.name + "  " + end_of(run);
  if (run.status.state == CellState::complete) {
    log.info(text);
    return ExitCode::done;
  }
  log.error(text);
  return run.status.code == ExitCode::done ? ExitCode::peer_lost : run.status.code;
}

ExitCode sweep_all(StudyDirectory const& study, std::vector<Cell> const& cells,
                   CellStart const& start, ProgressStyle style, Log& log) {
  return Sweep(study, start, style, log).run(cells);
}

}  // namespace stratagem
