#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/console/log.hpp"
#include "comm/process_info.hpp"
#include "mpi/comm.hpp"
#include "predict/calibration.hpp"

namespace stratagem {

/// Passes of one kind that are to be timed.
struct WantedPass {
  RunConfig config;                   ///< of one run that makes them
  std::vector<std::int64_t> samples;  ///< rising; two or more
};

/// What to time so that runs like these can be predicted: of each kind of pass the smallest and the
/// largest number of samples, and up to two between them. Runs that no rank could start are left
/// out.
std::vector<WantedPass> wanted_passes(std::vector<RunConfig> const& runs);

/// Measures with all ranks of `world` the operations between them (of one: its copies); one alone
/// also times what servers do. Passes are timed by all ranks at once, and not at all by more than
/// have cores for their threads, or GPUs of their own. Collective.
///
/// A pass is one of strategy serial on random images: what a run does, with no communication. Its
/// time is the median of several, of the slowest rank; that of an operation the least of several,
/// since whoever else is on the machine delays messages by much more than passes. Numbers of
/// samples whose step would take longer than 20 s, or more memory than there is, are left out, with
/// a warning. Rank 0 also runs the small passes that tell what others hold. All ranks at once save
/// states such as theirs, of half a GiB each at most, into `folder`, where they leave nothing.
///
/// What was measured is added to `known`; Error(usage) before anything is measured when that is of
/// another machine, Error(io) when nothing can be saved.
Calibration calibrate(std::vector<WantedPass> const& wanted, std::optional<Calibration> known,
                      std::filesystem::path const& folder, mpi::Comm const& world, Log& log);

}  // namespace stratagem
