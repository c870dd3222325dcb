#include "base/error.hpp"
#include "comm/nccl/nccl_world.hpp"

namespace stratagem {

std::unique_ptr<World> make_nccl_world(mpi::Comm const&, gpu::Device const&, trace::Recorder*,
                                       std::chrono::nanoseconds, std::unique_ptr<PeriodicTask>) {
  throw Error(ExitCode::environment, "comm.backend: nccl cannot be used",
              "this program was built without CUDA",
              "build it with -DSTRATAGEM_CUDA=ON, or take comm.backend: mpi");
}

}  // namespace stratagem
