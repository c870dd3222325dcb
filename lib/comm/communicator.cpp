#include "comm/communicator.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {

using Kind = CollectiveCall::Kind;

Work Communicator::all_reduce(at::Tensor const& tensor) {
  collectives_.add(
      {Kind::all_reduce, tensor.scalar_type(), tensor.numel(), tensor.storage_offset()});
  return start_all_reduce(tensor);
}

Work Communicator::reduce_scatter(at::Tensor const& output, at::Tensor const& input) {
  collectives_.add(
      {Kind::reduce_scatter, input.scalar_type(), output.numel(), input.storage_offset()});
  return start_reduce_scatter(output, input);
}

Work Communicator::all_gather(at::Tensor const& output, at::Tensor const& input) {
  collectives_.add({Kind::all_gather, input.scalar_type(), input.numel(), output.storage_offset()});
  return start_all_gather(output, input);
}

Work Communicator::broadcast(at::Tensor const& tensor, int root) {
  collectives_.add(
      {Kind::broadcast, tensor.scalar_type(), tensor.numel(), tensor.storage_offset(), root});
  return start_broadcast(tensor, root);
}

Work Communicator::barrier() {
  collectives_.add({Kind::barrier});
  return start_barrier();
}

std::unique_ptr<RemoteMemory> Communicator::share_memory(std::int64_t, at::ScalarType) {
  throw AgreedError(ExitCode::environment, str("communicator ", backend(), " has no remote memory"),
                    {}, "take comm.backend: mpi, or strategy.transport: two_sided");
}

}  // namespace stratagem
