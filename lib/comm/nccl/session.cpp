#include "comm/nccl/session.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

Error start_error(std::string_view call, std::string const& why) {
  return Error(ExitCode::environment, str("NCCL cannot start: ", call), why,
               "set NCCL_DEBUG=WARN to see more, or take comm.backend: mpi");
}

/// A new id from rank 0, on every rank.
ncclUniqueId shared_id(mpi::Comm const& world) {
  ncclUniqueId id{};
  std::optional<Error> failure;
  if (world.rank() == 0)
    if (auto const result = ncclGetUniqueId(&id); result != ncclSuccess)
      failure = start_error("ncclGetUniqueId", ncclGetErrorString(result));
  agree(world, failure);
  std::string bytes(id.internal, sizeof(id.internal));
  world.broadcast(bytes, 0);
  std::memcpy(id.internal, bytes.data(), sizeof(id.internal));
  return id;
}

}  // namespace

NcclSession::NcclSession(mpi::Comm const& world, gpu::Device const& device,
                         std::chrono::nanoseconds timeout)
    : timeout_(timeout) {
  gpu::select(device);
  auto const id = shared_id(world);
  std::optional<Error> failure;
  try {
    start(id, world);
  } catch (Error const& error) {
    failure = error;
  }
  try {
    agree(world, failure);
  } catch (...) {
    abort();
    throw;
  }
}

void NcclSession::start(ncclUniqueId const& id, mpi::Comm const& world) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  auto result = ncclCommInitRankConfig(&handle_, world.size(), id, world.rank(), &config);
  auto const deadline = monotonic_ns() + timeout_.count();
  while (result == ncclInProgress) {
    if (monotonic_ns() > deadline)
      throw start_error("ncclCommInitRankConfig", "not all ranks came in time");
    std::this_thread::sleep_for(1ms);
    if (auto const asked = ncclCommGetAsyncError(handle_, &result); asked != ncclSuccess)
      result = asked;
  }
  if (result != ncclSuccess)
    throw start_error("ncclCommInitRankConfig", ncclGetErrorString(result));
}

NcclSession::~NcclSession() {
  if (handle_ == nullptr || aborted_) return;
  auto result = ncclCommFinalize(handle_);
  auto const deadline = monotonic_ns() + timeout_.count();
  while (result == ncclInProgress && monotonic_ns() < deadline) {
    std::this_thread::yield();
    ncclCommGetAsyncError(handle_, &result);
  }
  if (result == ncclSuccess)
    ncclCommDestroy(handle_);
  else
    abort();
}

void NcclSession::submitted(ncclResult_t result, std::string_view call) {
  auto const deadline = monotonic_ns() + timeout_.count();
  while (result == ncclInProgress) {
    if (monotonic_ns() > deadline) give_up(call);
    std::this_thread::yield();
    if (auto const asked = ncclCommGetAsyncError(handle_, &result); asked != ncclSuccess)
      result = asked;
  }
  if (result == ncclSuccess) return;
  abort();
  throw Error(ExitCode::peer_lost, str(call, " failed"), ncclGetErrorString(result),
              "look at the first rank that ended");
}

void NcclSession::check(std::string_view waiting_for) {
  ncclResult_t result = ncclInternalError;  // the state of an aborted communicator
  if (!aborted_) {
    auto const asked = ncclCommGetAsyncError(handle_, &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result != ncclSuccess && result != ncclInProgress) submitted(result, waiting_for);
}

void NcclSession::give_up(std::string_view waiting_for) {
  abort();
  throw Error(
      ExitCode::stall,
      str(waiting_for, " has waited ",
          format_duration(std::chrono::duration<double>(timeout_).count()), " for other ranks"),
      "a rank hangs, is gone, or is slower than comm.timeout_s allows",
      "look at the first rank that ended, or raise comm.timeout_s");
}

void NcclSession::abort() noexcept {
  if (handle_ != nullptr && !aborted_) ncclCommAbort(handle_);
  aborted_ = true;
}

}  // namespace stratagem
