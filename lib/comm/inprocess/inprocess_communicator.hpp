#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.hpp"
#include "comm/inprocess/simulated_ranks.hpp"

namespace stratagem {

/// A group whose ranks are threads of this process: a simulation controlled by a seed.
/// Ranks take turns (see Turns). Collectives, messages and memory accesses read and write tensors
/// at any time until their Work is done, early on some ranks and late on others (see Network). A
/// send may be done before its receive has begun, or not. Sums are those of MpiCommunicator, bit
/// for bit. CPU tensors only.
class InProcessCommunicator final : public Communicator {
 public:
  explicit InProcessCommunicator(SimulatedMember member) : member_(std::move(member)) {}

  int rank() const override { return member_.rank; }
  int size() const override { return static_cast<int>(member_.group.ranks.size()); }
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
  Work work(std::string what, std::shared_ptr<bool> done) const;

  SimulatedMember member_;
  std::int64_t sequence_ = 0;  ///< of this rank's next collective
  std::size_t shared_ = 0;     ///< memories made so far
  std::int64_t bytes_sent_ = 0;
};

}  // namespace stratagem
