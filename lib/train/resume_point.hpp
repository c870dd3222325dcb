#pragma once

#include <cstdint>
#include <optional>

#include "base/console/log.hpp"
#include "mpi/comm.hpp"
#include "run_files/checkpoint.hpp"
#include "run_files/run_directory.hpp"
#include "train/run.hpp"
#include "train/setup.hpp"

namespace stratagem {

/// Where a run begins.
struct ResumePoint {
  std::optional<Checkpoint> checkpoint;
  int in_vain = 0;  ///< attempts in a row before this one that began there, too

  std::int64_t step() const { return checkpoint ? checkpoint->record().position.step : 0; }
};

/// What a resumed run starts from: the newest whole checkpoint, if there is one; the same on every
/// rank. Collective; the directory is claimed. Error(checkpoint) when it is another run's, or when
/// a scheduler has started the run again several times and it has not got on.
ResumePoint choose_resume_point(RunRequest const& request, RunDirectory const& directory,
                                Setup const& setup, mpi::Comm const& world, Log& log);

}  // namespace stratagem
