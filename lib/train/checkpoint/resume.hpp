#pragma once

#include <map>
#include <string>

#include "base/log.hpp"
#include "model/model.hpp"
#include "strategy/strategy.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/setup.hpp"

namespace stratagem {

/// How much a training that goes on may differ from the one that was saved.
enum class Likeness {
  exact,       ///< in nothing on which its numbers depend: they are those of one that never stopped
  compatible,  ///< in all but model and dataset
};

/// On what the numbers of a training depend, by name. `values`: the configuration, by path.
/// Strategies that add in the same order are alike, whatever they are called.
std::map<std::string, std::string> training_facts(std::map<std::string, std::string> const& values,
                                                  Setup const& setup);

/// Error(checkpoint) naming every fact that forbids to go on from the checkpoint; those that only
/// an exact continuation forbids are logged where that was not asked for. Tensors that do not fit
/// the model are listed, too.
void check_resumable(Checkpoint const& checkpoint, std::map<std::string, std::string> const& facts,
                     Model const& model, Likeness likeness, Log& log);

/// Gives the strategy the state that was saved, under whichever strategy and number of workers.
void restore(Checkpoint const& checkpoint, int workers, Strategy& strategy);

}  // namespace stratagem
