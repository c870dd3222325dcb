#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/comm_config.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/submission.hpp"
#include "comm/node/open_arena.hpp"
#include "comm/work/mismatch_check.hpp"
#include "comm/work/progress.hpp"
#include "comm/world.hpp"
#include "gpu/device.hpp"
#include "mpi/comm.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// Groups of ranks that are processes of MPI. They share the progress thread, which from
/// construction to destruction is the only thread of this process that may call MPI, and the memory
/// of their node.
class MpiWorld final : public World {
 public:
  /// Collective over `comm`. `recorder` may be null. If nothing moves for `timeout`, an operation
  /// ends in Error(stall). If ranks have called different collectives, it ends in Error(mismatch),
  /// at once if sizes differ. Each operation is delayed by a random time up to `delay`.
  /// `periodic_task` is passed to the progress thread. AgreedError(environment) as open_arena().
  MpiWorld(mpi::Comm const& comm, gpu::Device const& device, trace::Recorder* recorder,
           std::chrono::nanoseconds timeout, std::chrono::nanoseconds delay = {},
           std::unique_ptr<PeriodicTask> periodic_task = nullptr, NodeUse const& node = {});

  MpiCommunicator& all() override { return all_; }

  /// Calls `act` on the progress thread, with a communicator of all ranks, and throws here what it
  /// throws. Collective.
  void call(std::function<void(mpi::Comm const&)> const& act);
  std::vector<std::string> gather(std::string const& text) override;

 private:
  std::unique_ptr<Communicator> open(std::string const& name,
                                     std::vector<int> const& ranks) override;

  mpi::Comm comm_;
  gpu::Device device_;
  OpenedArena node_;
  Submission submission_;
  MpiCommunicator all_;
  MismatchCheck mismatch_check_;
  std::size_t queues_ = 1;  ///< of groups so far
  Progress progress_;
};

}  // namespace stratagem
