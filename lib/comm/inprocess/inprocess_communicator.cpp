#include "comm/inprocess/inprocess_communicator.hpp"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/collective_calls.hpp"
#include "comm/inprocess/group.hpp"
#include "comm/inprocess/inprocess_memory.hpp"
#include "comm/reduction.hpp"

namespace stratagem {

InProcessCommunicator::InProcessCommunicator(std::shared_ptr<InProcessGroup> group, int rank)
    : group_(std::move(group)), rank_(rank) {}

int InProcessCommunicator::size() const {
  return group_->size();
}

at::Tensor InProcessCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  return at::zeros({numel}, type);
}

Work InProcessCommunicator::collective(CollectiveCall const& call, at::Tensor const& output,
                                       at::Tensor const& input) {
  expects(!output.defined() || (output.is_contiguous() && input.is_contiguous()),
          "contiguous tensors");
  group_->begin(rank_);
  return group_->meet(rank_, sequence_++, call, output, input);
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
  if (rank_ == root) bytes_sent_ += bytes_of(tensor) * (size() - 1);
  return collective(broadcast_call(tensor, root), tensor, tensor);
}

Work InProcessCommunicator::start_barrier() {
  return collective(barrier_call(), {}, {});
}

Work InProcessCommunicator::send(at::Tensor const& tensor, int peer, int tag) {
  expects(tag >= 0 && tag <= max_tag && peer != rank_, "a tag in range and another rank");
  group_->begin(rank_);
  bytes_sent_ += bytes_of(tensor);
  InProcessGroup::Message message{tensor};
  auto const done = message.done;
  if (group_->chance()) {  // the library has copied it: the sender need not wait for the receiver
    message.tensor = tensor.detach().clone();
    *done = true;
  }
  group_->send(rank_, peer, tag, std::move(message));
  return group_->work(rank_, str("send to rank ", peer), done);
}

Work InProcessCommunicator::receive(at::Tensor const& tensor, int peer, int tag) {
  expects(tag >= 0 && tag <= max_tag && peer != rank_, "a tag in range and another rank");
  group_->begin(rank_);
  InProcessGroup::Message message{tensor};
  auto const done = message.done;
  group_->receive(peer, rank_, tag, std::move(message));
  return group_->work(rank_, str("receive from rank ", peer), done);
}

std::unique_ptr<RemoteMemory> InProcessCommunicator::share_memory(std::int64_t numel,
                                                                  at::ScalarType type) {
  auto memories = group_->memories(shared_++);
  memories->at(static_cast<std::size_t>(rank_)) = at::zeros({numel}, type);
  barrier().wait_on_host();
  return std::make_unique<InProcessMemory>(group_, rank_, std::move(memories));
}

void run_ranks(int ranks, std::uint64_t seed, std::function<void(Communicator&)> const& body,
               std::optional<Death> death) {
  auto const group = std::make_shared<InProcessGroup>(ranks, seed, death);
  std::mutex mutex;
  std::exception_ptr first;
  auto const run = [&](int rank) {
    at::set_num_threads(1);
    try {
      group->turns().enter(rank);
      InProcessCommunicator communicator(group, rank);
      body(communicator);
      group->expect_alive(rank);  // what waits in a destructor does not throw
      group->turns().leave(rank);
    } catch (...) {
      {
        std::lock_guard const lock(mutex);
        if (!first) first = std::current_exception();
      }
      group->turns().fail(std::make_exception_ptr(
          Error(ExitCode::peer_lost, str("rank ", rank, " ended with an error"))));
      group->turns().leave(rank);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace stratagem
