#pragma once

#include "base/console/log.hpp"
#include "model/model.hpp"
#include "run_files/checkpoint.hpp"
#include "strategy/strategy.hpp"
#include "train/checkpoint/facts.hpp"

namespace stratagem {

/// Error(checkpoint) naming every fact that forbids to resume from the checkpoint; those that only
/// an exact continuation forbids are logged where that was not asked for. Tensors that do not fit
/// the model are listed, too.
void check_resumable(Checkpoint const& checkpoint, Facts const& facts, Model const& model,
                     ResumeMode resume_mode, Log& log);

/// Gives this rank its part of the state that was saved, under whichever strategy and number of
/// workers.
void restore(Checkpoint const& checkpoint, int workers, Model const& model,
             Participant& participant);

}  // namespace stratagem
