#pragma once

#include <memory>

#include "comm/inprocess/group.hpp"
#include "comm/remote_memory.hpp"

namespace stratagem {

/// For ranks that are threads of one process and take turns.
class InProcessMemory final : public RemoteMemory {
 public:
  InProcessMemory(std::shared_ptr<InProcessGroup> group, int rank,
                  InProcessGroup::Memories memories)
      : group_(std::move(group)), rank_(rank), memories_(std::move(memories)) {}

  at::Tensor local() const override { return of(rank_); }
  Work put(at::Tensor const& source, int peer, std::int64_t offset, int tag) override;
  Work await_put(int peer, int tag) override;
  Work get(at::Tensor const& target, int peer, std::int64_t offset, int tag) override;
  Work offer(int peer, int tag, std::int64_t bytes) override;

 private:
  at::Tensor const& of(int rank) const { return (*memories_)[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<InProcessGroup> group_;
  int rank_;
  InProcessGroup::Memories memories_;
};

}  // namespace stratagem
