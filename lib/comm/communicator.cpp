#include "comm/communicator.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/collective_calls.hpp"

namespace stratagem {

Work Communicator::all_reduce(at::Tensor const& tensor) {
  note(all_reduce_call(tensor));
  return start_all_reduce(tensor);
}

Work Communicator::reduce_scatter(at::Tensor const& output, at::Tensor const& input) {
  note(reduce_scatter_call(output, input));
  return start_reduce_scatter(output, input);
}

Work Communicator::all_gather(at::Tensor const& output, at::Tensor const& input) {
  note(all_gather_call(output, input));
  return start_all_gather(output, input);
}

Work Communicator::broadcast(at::Tensor const& tensor, int root) {
  note(broadcast_call(tensor, root));
  return start_broadcast(tensor, root);
}

Work Communicator::barrier() {
  note(barrier_call());
  return start_barrier();
}

Communicator::Kept Communicator::keep(std::function<void()> const& body) {
  Kept kept;
  auto const before = bytes_sent();
  keeping_ = &kept.calls;
  try {
    body();
  } catch (...) {
    keeping_ = nullptr;
    throw;
  }
  keeping_ = nullptr;
  kept.bytes_sent = bytes_sent() - before;
  return kept;
}

void Communicator::repeat(Kept const& kept) {
  for (auto const& call : kept.calls) note(call);
}

void Communicator::note(CollectiveCall const& call) {
  collectives_.add(call);
  if (keeping_ != nullptr) keeping_->push_back(call);
}

std::unique_ptr<RemoteMemory> Communicator::share_memory(std::int64_t, at::ScalarType) {
  throw AgreedError(ExitCode::environment, str("communicator ", backend(), " has no remote memory"),
                    {}, "take comm.backend: mpi, or strategy.transport: two_sided");
}

}  // namespace stratagem
