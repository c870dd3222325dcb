#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "comm/comm_config.hpp"
#include "comm/communicator.hpp"
#include "comm/mpi/mismatch_check.hpp"
#include "comm/mpi/operations.hpp"
#include "comm/mpi/staging.hpp"
#include "comm/node/open_arena.hpp"
#include "comm/work/progress.hpp"
#include "mpi/comm.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// Uses MPI point-to-point messages of host memory; does not need a GPU-aware MPI. GPU tensors
/// travel through pinned host buffers. Ranks of one node sum and gather CPU tensors in memory that
/// all of them map. From construction to destruction, the progress thread is the only thread of
/// this process that may call MPI.
class MpiCommunicator final : public Communicator {
 public:
  /// Collective over `comm`. `recorder` may be null. If nothing moves for `timeout`, an operation
  /// ends in Error(stall). If ranks have called different collectives, it ends in Error(mismatch),
  /// at once if sizes differ. Each operation is delayed by a random time up to `delay`.
  /// `periodic_task` is passed to the progress thread. AgreedError(environment) as
  /// open_arena().
  MpiCommunicator(mpi::Comm const& comm, gpu::Device const& device, trace::Recorder* recorder,
                  std::chrono::nanoseconds timeout, std::chrono::nanoseconds delay = {},
                  std::unique_ptr<PeriodicTask> periodic_task = nullptr, NodeUse const& node = {});

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string_view backend() const override { return "mpi"; }
  std::string_view remark() const override { return remark_; }
  std::string route() const override;
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

  enum class Name {
    all_reduce,
    reduce_scatter,
    all_gather,
    broadcast,
    barrier,
    send,
    receive,
    rma
  };

  /// Makes the operation with host copies of `arguments`, and submits it.
  template <class Make>
  Work run(Name name, std::vector<Argument> arguments, int peer, Make make);
  /// All-reduce, reduce-scatter or all-gather, in node memory if there is any, and the bytes that
  /// this rank would send by messages.
  std::pair<std::unique_ptr<Operation>, std::int64_t> sliced(SlicedCollective::Kind kind,
                                                             at::Tensor const& input,
                                                             at::Tensor const& output);
  int next_tag();
  Work submit(std::unique_ptr<Operation> operation, trace::SpanRecord const& span);

  mpi::Comm comm_;
  gpu::Device device_;
  std::vector<trace::NameId> names_;  ///< of spans, by Name
  std::int64_t bytes_sent_ = 0;
  int sequence_ = 0;
  std::string remark_;
  std::chrono::nanoseconds delay_;
  CounterRandom random_;  ///< for delays; a different sequence on every rank
  Staging staging_;
  OpenedArena node_;
  std::uint64_t node_collectives_ = 0;  ///< called so far
  std::uint64_t submitted_ = 0;
  MismatchCheck mismatch_check_;
  Progress progress_;
};

}  // namespace stratagem
