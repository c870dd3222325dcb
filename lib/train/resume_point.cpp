#include "train/resume_point.hpp"

#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "mpi/session.hpp"
#include "run_files/outcome.hpp"
#include "train/checkpoint/resume.hpp"
#include "train/manifest.hpp"

namespace stratagem {
namespace {

/// A scheduler that starts a job again and again would do so for ever where none gets on.
void require_progress(Outcome const& before, ResumePoint const& now) {
  constexpr int most = 3;
  auto const* const restarts = std::getenv("SLURM_RESTART_COUNT");
  if (now.in_vain < most || restarts == nullptr || parse_integer(restarts).value_or(0) < most)
    return;
  throw Error(ExitCode::checkpoint,
              str("the run does not get on: ", now.in_vain, " attempts in a row began after step ",
                  now.step(), " and saved nothing"),
              "the last of them: " + before.reason,
              "see its log; then resubmit the job, or save more often (checkpoint.every_minutes)");
}

/// Nothing was saved, but the directory stays one run's.
void check_new_start(std::filesystem::path const& run_directory, Facts const& facts,
                     ResumeMode resume_mode, Log& log) {
  std::string changed;
  if (auto const former = former_facts(run_directory))
    changed = require_alike(without_surroundings(*former), without_surroundings(facts), resume_mode,
                            "the attempts in " + run_directory.string());
  if (!changed.empty()) log.warning("it is not what the attempt before was: " + changed);
  log.info("there is no checkpoint: the run starts at step 0");
}

}  // namespace

ResumePoint choose_resume_point(RunRequest const& request, RunDirectory const& directory,
                                Setup const& setup, mpi::Comm const& world, Log& log) {
  if (request.existing != Existing::resume) return {};
  auto const facts = training_facts(request.values, setup);
  mpi::Session::enter(world, "the reading of checkpoints");
  auto const found = from_rank_0(world, [&]() -> std::string {
    auto const outcome = read_outcome(directory.path);
    if (!outcome) return "0 ";
    ResumePoint begin{.checkpoint = newest_checkpoint(directory.path, log)};
    bool const was_kept = outcome->code != ExitCode::io;  // else it is what was lost
    if (!begin.checkpoint && outcome->status == RunStatus::complete && outcome->steps > 0 &&
        was_kept)
      throw Error(ExitCode::checkpoint,
                  "there is no checkpoint to train the finished run in " + directory.path.string() +
                      " further from",
                  "it did not save its last step (checkpoint.at_end)",
                  "name another directory with --out");
    if (begin.checkpoint && begin.step() > setup.plan.total_steps)
      refuse_to_resume(directory.path.string(),
                       {str("its checkpoint is of step ", begin.step(), ", and run.epochs or ",
                            "run.max_steps end at ", setup.plan.total_steps)});
    if (begin.checkpoint)
      check_resumable(*begin.checkpoint, facts, setup.model, request.resume_mode, log);
    else
      check_new_start(directory.path, facts, request.resume_mode, log);
    bool const ended = outcome->status == RunStatus::complete;
    if (!ended && outcome->began_after == begin.step()) begin.in_vain = outcome->in_vain + 1;
    require_progress(*outcome, begin);
    return str(begin.in_vain, " ", begin.checkpoint ? begin.checkpoint->folder().string() : "");
  });
  auto const space = found.find(' ');
  auto const folder = found.substr(space + 1);
  ResumePoint begin{.in_vain = static_cast<int>(*parse_integer(found.substr(0, space)))};
  if (!folder.empty())
    begin.checkpoint = on_all_ranks(world, [&] { return std::optional<Checkpoint>(folder); });
  return begin;
}

}  // namespace stratagem
