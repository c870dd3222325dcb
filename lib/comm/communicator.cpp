#include "comm/communicator.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {

std::unique_ptr<RemoteMemory> Communicator::share_memory(std::int64_t, at::ScalarType) {
  throw AgreedError(ExitCode::environment, str("communicator ", backend(), " has no remote memory"),
                    {}, "take comm.backend: mpi, or strategy.transport: two_sided");
}

}  // namespace stratagem
