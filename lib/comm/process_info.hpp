#pragma once

#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// Where this process stands among all processes of the run; discovered once.
struct ProcessInfo {
  int rank = 0;
  int size = 1;
  int node_rank = 0;  ///< among the ranks on its node
  int node_size = 1;  ///< ranks on its node
  int nodes = 1;
  std::string host;
  std::vector<int> cores;      ///< that its affinity mask lets it use
  gpu::Device device;          ///< a GPU where the build and the node have one
  bool shares_device = false;  ///< somewhere in the run two ranks have one GPU, or one has none
};

/// Of a process alone.
ProcessInfo discover_process();
/// Collective over `world`. Those ranks of a node that compute take its visible GPUs in turn; the
/// others have none.
ProcessInfo discover_process(mpi::Comm const& world, bool computes = true);

}  // namespace stratagem
