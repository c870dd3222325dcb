#include "base/error.hpp"
#include "comm/nccl/nccl_communicator.hpp"

namespace stratagem {

std::unique_ptr<Communicator> make_nccl_communicator(mpi::Comm const&, gpu::Device const&,
                                                     trace::Recorder*, std::chrono::nanoseconds,
                                                     std::unique_ptr<PeriodicTask>) {
  throw Error(ExitCode::environment, "comm.backend: nccl cannot be used",
              "this program was built without CUDA",
              "build it with -DSTRATAGEM_CUDA=ON, or take comm.backend: mpi");
}

}  // namespace stratagem
