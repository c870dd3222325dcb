#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/setup.hpp"

namespace stratagem {

/// On what the numbers of a training depend, by name. What a configuration's key says alone is
/// named as the key.
using Facts = std::map<std::string, std::string>;

/// How much a resumed training may differ from what it was before.
enum class ResumeMode {
  exact,       ///< in nothing on which its numbers depend: they are those of one that never stopped
  compatible,  ///< in all but model and dataset
};

/// `values`: the configuration, by path. Strategies that add in the same order are alike, whatever
/// they are called.
Facts training_facts(std::map<std::string, std::string> const& values, Setup const& setup);

/// Those that say what was to be done, without those of the machine that did it.
Facts without_surroundings(Facts facts);

/// What differs: "optimizer.lr was 0.1 and is 0.5".
struct Differences {
  std::vector<std::string> forbidden;  ///< with these nothing can be resumed
  std::vector<std::string> allowed;    ///< those that only an exact continuation forbids
};
Differences compare(Facts before, Facts const& now, ResumeMode resume_mode);

/// Error(checkpoint) naming what forbids to resume from `what`.
[[noreturn]] void refuse_to_resume(std::string const& what,
                                   std::vector<std::string> const& forbidden);

/// Error(checkpoint) naming every fact that forbids to resume from `what`. Returns those that only
/// an exact continuation forbids, where that was not asked for; empty for none.
std::string require_alike(Facts before, Facts const& now, ResumeMode resume_mode,
                          std::string const& what);

}  // namespace stratagem
