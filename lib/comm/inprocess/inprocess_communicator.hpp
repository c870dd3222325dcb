#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "comm/communicator.hpp"
#include "comm/inprocess/death.hpp"

namespace stratagem {

class InProcessGroup;

/// One rank of a group whose ranks are threads of this process: a simulation controlled by a seed.
/// Ranks take turns (see Turns). Collectives, messages and memory accesses read and write tensors
/// at any time until their Work is done, early on some ranks and late on others (see Network). A
/// send may be done before its receive has begun, or not. Sums are those of MpiCommunicator, bit
/// for bit. CPU tensors only.
class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<InProcessGroup> group, int rank);

  int rank() const override { return rank_; }
  int size() const override;
  std::string_view backend() const override { return "inprocess"; }
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override;

  Work send(at::Tensor const& tensor, int peer, int tag) override;
  Work receive(at::Tensor const& tensor, int peer, int tag) override;
  std::unique_ptr<RemoteMemory> share_memory(std::int64_t numel, at::ScalarType type) override;
  std::int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  Work start_all_reduce(at::Tensor const& tensor) override;
  Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) override;
  Work start_all_gather(at::Tensor const& output, at::Tensor const& input) override;
  Work start_broadcast(at::Tensor const& tensor, int root) override;
  Work start_barrier() override;
  Work collective(CollectiveCall const& call, at::Tensor const& output, at::Tensor const& input);

  std::shared_ptr<InProcessGroup> group_;
  int rank_;
  std::int64_t sequence_ = 0;  ///< of this rank's next collective
  std::size_t shared_ = 0;     ///< memories made so far
  std::int64_t bytes_sent_ = 0;
};

/// Runs `body` on `ranks` threads, each with its communicator, in an order decided by `seed`. If a
/// rank throws, others that wait for it throw Error(peer_lost); the first exception is thrown here.
/// If ranks call different collectives, all throw Error(mismatch); if all ranks wait for each
/// other, all throw Error(stall). A rank that dies throws Error(peer_lost) from then on; some of
/// its operations in flight still arrive.
void run_ranks(int ranks, std::uint64_t seed, std::function<void(Communicator&)> const& body,
               std::optional<Death> death = {});

}  // namespace stratagem
