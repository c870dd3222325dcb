#pragma once

#include <functional>
#include <memory>

#include "comm/mpi/staging.hpp"
#include "comm/mpi/window_operations.hpp"
#include "comm/remote_memory.hpp"

namespace stratagem {

/// An MPI window of host memory; data are copied between it and GPU tensors. Only the progress
/// thread of the communicator that made it calls MPI. That communicator and its staging must
/// outlive it.
class MpiMemory final : public RemoteMemory {
 public:
  /// Passes an operation, and the number of bytes it sends, to the progress thread.
  using Submit =
      std::function<Work(std::unique_ptr<Operation> operation, int peer, std::int64_t bytes)>;

  /// Collective. AgreedError(environment) if it cannot be created.
  MpiMemory(mpi::Comm const& comm, std::int64_t numel, at::ScalarType type, Staging& staging,
            Submit submit);
  /// Collective.
  ~MpiMemory() override;

  at::Tensor local() const override { return local_; }
  Work put(at::Tensor const& source, int peer, std::int64_t offset, int tag) override;
  Work await_put(int peer, int tag) override;
  Work get(at::Tensor const& target, int peer, std::int64_t offset, int tag) override;
  Work offer(int peer, int tag, std::int64_t bytes) override;

 private:
  mpi::Comm comm_;
  Staging& staging_;
  Submit submit_;
  std::unique_ptr<mpi::Window> window_;
  at::Tensor local_;
};

}  // namespace stratagem
