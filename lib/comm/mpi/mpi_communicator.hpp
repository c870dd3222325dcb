#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/mpi/operations.hpp"
#include "comm/mpi/submission.hpp"
#include "comm/node/open_arena.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// A group of an MpiWorld. Uses MPI point-to-point messages of host memory; does not need a
/// GPU-aware MPI. GPU tensors travel through pinned host buffers. Ranks of one node sum and gather
/// CPU tensors in memory that all of them map.
class MpiCommunicator final : public Communicator {
 public:
  /// `comm`: of the group alone. `device`: of the rank. `queue`: of the group's collectives.
  MpiCommunicator(mpi::Comm comm, gpu::Device const& device, OnNodes node, Submission& submission,
                  std::size_t queue, std::string remark = {});

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
  using Made = Submission::Made;
  using Name = Submission::Name;

  Work start_all_reduce(at::Tensor const& tensor) override;
  Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) override;
  Work start_all_gather(at::Tensor const& output, at::Tensor const& input) override;
  Work start_broadcast(at::Tensor const& tensor, int root) override;
  Work start_barrier() override;

  Work run(Name name, std::vector<Argument> arguments, int peer, Submission::Make const& make);
  /// All-reduce, reduce-scatter or all-gather, in node memory if there is any, and the bytes that
  /// this rank would send by messages.
  Made sliced(SlicedCollective::Kind kind, at::Tensor const& input, at::Tensor const& output);
  int next_tag();

  mpi::Comm comm_;
  gpu::Device device_;
  OnNodes node_;
  Submission& submission_;
  std::size_t queue_;
  std::string remark_;
  std::int64_t bytes_sent_ = 0;
  int sequence_ = 0;
  std::uint64_t node_collectives_ = 0;  ///< called so far
};

}  // namespace stratagem
