#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/remote_memory.hpp"

namespace stratagem {

/// Among ranks that are threads of one process and take turns.
class InProcessMemory final : public RemoteMemory {
 public:
  /// `memories`: by rank, of all of them. The communicator outlives it.
  InProcessMemory(Communicator& communicator, std::shared_ptr<std::vector<at::Tensor>> memories)
      : communicator_(communicator), memories_(std::move(memories)) {}

  at::Tensor local() const override { return of(communicator_.rank()); }
  Work put(at::Tensor const& source, int peer, std::int64_t offset, int tag) override;
  Work await_put(int peer, int tag) override;
  Work get(at::Tensor const& target, int peer, std::int64_t offset, int tag) override;
  Work offer(int peer, int tag) override;

 private:
  at::Tensor const& of(int rank) const { return (*memories_)[static_cast<std::size_t>(rank)]; }

  Communicator& communicator_;
  std::shared_ptr<std::vector<at::Tensor>> memories_;
};

}  // namespace stratagem
