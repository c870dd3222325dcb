#pragma once

#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// The place of this process among all processes of the run; determined once.
struct ProcessInfo {
  int rank = 0;
  int size = 1;
  int node_rank = 0;  ///< among the ranks on its node
  int node_size = 1;  ///< ranks on its node
  int nodes = 1;
  std::string host;
  std::vector<int> cores;      ///< in its affinity mask
  gpu::Device device;          ///< a GPU, if build and node have one
  bool shares_device = false;  ///< some ranks of the run share a GPU, or have none
};

/// For a single process.
ProcessInfo discover_process();
/// Collective over `world`. The ranks of a node that compute get its visible GPUs in turn; other
/// ranks get none.
ProcessInfo discover_process(mpi::Comm const& world, bool computes = true);

}  // namespace stratagem
