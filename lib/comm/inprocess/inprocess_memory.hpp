#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm/inprocess/simulated_ranks.hpp"
#include "comm/remote_memory.hpp"

namespace stratagem {

/// For ranks that are threads of one process and take turns.
class InProcessMemory final : public RemoteMemory {
 public:
  InProcessMemory(SimulatedMember member, SimulatedRanks::Memories memories)
      : member_(std::move(member)), memories_(std::move(memories)) {}

  at::Tensor local() const override { return of(member_.rank); }
  Work put(at::Tensor const& source, int peer, std::int64_t offset, int tag) override;
  Work await_put(int peer, int tag) override;
  Work get(at::Tensor const& target, int peer, std::int64_t offset, int tag) override;
  Work offer(int peer, int tag, std::int64_t bytes) override;

 private:
  at::Tensor const& of(int rank) const { return (*memories_)[static_cast<std::size_t>(rank)]; }

  Work work(std::string what, std::shared_ptr<bool> done) const;

  SimulatedMember member_;
  SimulatedRanks::Memories memories_;
};

}  // namespace stratagem
