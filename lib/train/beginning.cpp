#include "train/beginning.hpp"

#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "train/checkpoint/resume.hpp"
#include "train/failure.hpp"
#include "train/outcome.hpp"

namespace stratagem {
namespace {

/// A scheduler that starts a job again and again would do so for ever where none gets on.
void require_progress(Outcome const& before, Beginning const& now) {
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

}  // namespace

Beginning choose_beginning(RunRequest const& request, Setup const& setup, mpi::Comm const& world,
                           Log& log) {
  if (request.existing != Existing::resume) return {};
  auto const facts = training_facts(request.values, setup);
  auto const found = from_rank_0(world, [&]() -> std::string {
    std::filesystem::path const run_directory = request.config.run.out;
    auto const outcome = read_outcome(run_directory);
    if (!outcome || outcome->status == RunStatus::complete) return "0 ";
    Beginning begin{.checkpoint = newest_checkpoint(run_directory, log)};
    if (begin.checkpoint)
      check_resumable(*begin.checkpoint, facts, setup.model, request.likeness, log);
    else
      log.info("there is no checkpoint: the run starts at step 0");
    if (outcome->began_after == begin.step()) begin.in_vain = outcome->in_vain + 1;
    require_progress(*outcome, begin);
    return str(begin.in_vain, " ", begin.checkpoint ? begin.checkpoint->folder().string() : "");
  });
  auto const space = found.find(' ');
  auto const folder = found.substr(space + 1);
  Beginning begin{.in_vain = static_cast<int>(*parse_integer(found.substr(0, space)))};
  if (!folder.empty())
    begin.checkpoint = on_all_ranks(world, [&] { return std::optional<Checkpoint>(folder); });
  return begin;
}

}  // namespace stratagem
