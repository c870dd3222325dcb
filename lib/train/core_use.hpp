#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/process_info.hpp"

namespace stratagem {

/// What a rank used of its cores, and what these did in all [s].
struct CoreTimes {
  std::string cores;     ///< host and cores; ranks with the same text share them
  double available = 0;  ///< time that passed, times cores
  double busy = 0;       ///< NaN: not known
  double own = 0;        ///< by this rank
};

/// Of the time of the cores of a run, the least share that nothing but the run used: 1 where it was
/// alone. NaN if some rank does not know.
double least_undisturbed(std::vector<CoreTimes> const& ranks);

/// Counts from its construction on.
class CoreUse {
 public:
  explicit CoreUse(ProcessInfo const& process);
  /// least_undisturbed() of all ranks until now. Collective.
  double share(Communicator& communicator) const;

 private:
  std::string name_;
  std::vector<int> cores_;
  std::int64_t began_ns_;
  double busy_before_s_, own_before_s_;
};

}  // namespace stratagem
