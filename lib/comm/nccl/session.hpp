#pragma once

#include <chrono>
#include <string_view>

#include <nccl.h>

#include "gpu/device.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// A non-blocking NCCL communicator: every wait has a deadline, and the first failure aborts it, so
/// that no kernel waits forever for a lost peer.
class NcclSession {
 public:
  /// Collective over `world`; Error(environment) on all ranks if it fails on one.
  NcclSession(mpi::Comm const& world, gpu::Device const& device, std::chrono::nanoseconds timeout);
  ~NcclSession();
  NcclSession(NcclSession const&) = delete;
  NcclSession& operator=(NcclSession const&) = delete;

  ncclComm_t handle() const { return handle_; }
  std::chrono::nanoseconds timeout() const { return timeout_; }

  /// Returns when the call with this result has been enqueued on the device. Throws after a
  /// failure.
  void submitted(ncclResult_t result, std::string_view call);
  /// Throws Error(peer_lost) if NCCL has had an error since.
  void check(std::string_view waiting_for);
  /// Aborts and throws Error(stall).
  [[noreturn]] void give_up(std::string_view waiting_for);

 private:
  void start(ncclUniqueId const& id, mpi::Comm const& world);
  void abort() noexcept;

  ncclComm_t handle_ = nullptr;
  std::chrono::nanoseconds timeout_;
  bool aborted_ = false;
};

}  // namespace stratagem
