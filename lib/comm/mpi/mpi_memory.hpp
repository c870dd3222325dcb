#pragma once

#include <functional>
#include <memory>

#include "comm/mpi/staging.hpp"
#include "comm/mpi/window_operations.hpp"
#include "comm/remote_memory.hpp"

namespace stratagem {

/// In an MPI window of host memory, between which and a GPU's tensors goes a copy. Only the
/// progress thread of the communicator that made it, and that outlives it with its staging, calls
/// MPI.
class MpiMemory final : public RemoteMemory {
 public:
  /// Hands an operation that sends so many bytes to the progress thread.
  using Submit =
      std::function<Work(std::unique_ptr<Operation> operation, int peer, std::int64_t bytes)>;

  /// Collective. AgreedError(environment) where it cannot be had.
  MpiMemory(mpi::Comm const& comm, std::int64_t numel, at::ScalarType type, Staging& staging,
            Submit submit);
  /// Collective.
  ~MpiMemory() override;

  at::Tensor local() const override { return local_; }
  Work put(at::Tensor const& source, int peer, std::int64_t offset, int tag) override;
  Work await_put(int peer, int tag) override;
  Work get(at::Tensor const& target, int peer, std::int64_t offset, int tag) override;
  Work offer(int peer, int tag) override;

 private:
  mpi::Comm comm_;
  Staging& staging_;
  Submit submit_;
  std::unique_ptr<mpi::Window> window_;
  at::Tensor local_;
};

}  // namespace stratagem
