#include "comm/communicator.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/collective_calls.hpp"

namespace stratagem {

Work Communicator::all_reduce(at::Tensor const& tensor) {
  collectives_.add(all_reduce_call(tensor));
  return start_all_reduce(tensor);
}

Work Communicator::reduce_scatter(at::Tensor const& output, at::Tensor const& input) {
  collectives_.add(reduce_scatter_call(output, input));
  return start_reduce_scatter(output, input);
}

Work Communicator::all_gather(at::Tensor const& output, at::Tensor const& input) {
  collectives_.add(all_gather_call(output, input));
  return start_all_gather(output, input);
}

Work Communicator::broadcast(at::Tensor const& tensor, int root) {
  collectives_.add(broadcast_call(tensor, root));
  return start_broadcast(tensor, root);
}

Work Communicator::barrier() {
  collectives_.add(barrier_call());
  return start_barrier();
}

std::unique_ptr<RemoteMemory> Communicator::share_memory(std::int64_t, at::ScalarType) {
  throw AgreedError(ExitCode::environment, str("communicator ", backend(), " has no remote memory"),
                    {}, "take comm.backend: mpi, or strategy.transport: two_sided");
}

}  // namespace stratagem
