#include "comm/inprocess/inprocess_communicator.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/collective_calls.hpp"
#include "comm/inprocess/inprocess_memory.hpp"
#include "comm/reduction.hpp"

namespace stratagem {

at::Tensor InProcessCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  return at::zeros({numel}, type);
}

Work InProcessCommunicator::collective(CollectiveCall const& call, at::Tensor const& output,
                                       at::Tensor const& input) {
  expects(!output.defined() || (output.is_contiguous() && input.is_contiguous()),
          "contiguous tensors");
  member_.shared->begin(member_.own());
  return member_.shared->meet(member_.group, member_.own(), sequence_++, call, output, input);
}

Work InProcessCommunicator::work(std::string what, std::shared_ptr<bool> done) const {
  return member_.shared->work(member_.own(), std::move(what), std::move(done));
}

Work InProcessCommunicator::start_all_reduce(at::Tensor const& tensor) {
  expects(is_summable(tensor.scalar_type()), "a type that can be summed");
  bytes_sent_ += 2 * bytes_of(tensor) * (size() - 1) / size();
  return collective(all_reduce_call(tensor), tensor, tensor);
}

Work InProcessCommunicator::start_reduce_scatter(at::Tensor const& output,
                                                 at::Tensor const& input) {
  expects(is_summable(input.scalar_type()), "a type that can be summed");
  expects(input.numel() == output.numel() * size(), "input is N times as large as output");
  bytes_sent_ += bytes_of(output) * (size() - 1);
  return collective(reduce_scatter_call(output, input), output, input);
}

Work InProcessCommunicator::start_all_gather(at::Tensor const& output, at::Tensor const& input) {
  expects(output.numel() == input.numel() * size(), "output is N times as large as input");
  bytes_sent_ += bytes_of(input) * (size() - 1);
  return collective(all_gather_call(output, input), output, input);
}

Work InProcessCommunicator::start_broadcast(at::Tensor const& tensor, int root) {
  expects(root >= 0 && root < size(), "a rank of the group");
  if (rank() == root) bytes_sent_ += bytes_of(tensor) * (size() - 1);
  return collective(broadcast_call(tensor, root), tensor, tensor);
}

Work InProcessCommunicator::start_barrier() {
  return collective(barrier_call(), {}, {});
}

Work InProcessCommunicator::send(at::Tensor const& tensor, int peer, int tag) {
  expects(tag >= 0 && tag <= max_tag && peer != rank(), "a tag in range and another rank");
  member_.shared->begin(member_.own());
  bytes_sent_ += bytes_of(tensor);
  SimulatedRanks::Message message{tensor};
  auto const done = message.done;
  if (member_.shared->chance()) {
    // The library has copied it: the sender need not wait for the receiver.
    message.tensor = tensor.detach().clone();
    *done = true;
  }
  member_.shared->send(member_.to(peer, tag), std::move(message));
  return work(str("send to rank ", peer), done);
}

Work InProcessCommunicator::receive(at::Tensor const& tensor, int peer, int tag) {
  expects(tag >= 0 && tag <= max_tag && peer != rank(), "a tag in range and another rank");
  member_.shared->begin(member_.own());
  SimulatedRanks::Message message{tensor};
  auto const done = message.done;
  member_.shared->receive(member_.from(peer, tag), std::move(message));
  return work(str("receive from rank ", peer), done);
}

std::unique_ptr<RemoteMemory> InProcessCommunicator::share_memory(std::int64_t numel,
                                                                  at::ScalarType type) {
  auto memories = member_.shared->memories(member_.group, shared_++);
  memories->at(static_cast<std::size_t>(rank())) = at::zeros({numel}, type);
  barrier().wait_on_host();
  return std::make_unique<InProcessMemory>(member_, std::move(memories));
}

}  // namespace stratagem
