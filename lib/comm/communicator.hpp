#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/collective_log.hpp"
#include "comm/remote_memory.hpp"
#include "comm/work/work.hpp"

namespace stratagem {

/// Collectives and point-to-point on tensors within one group of ranks.
///
/// Tensors are contiguous, on this rank's device, and belong to the operation until its Work was
/// waited for. All ranks of the group must call the collectives in the same order, with equal sizes
/// and types, and with whole tensors at the same offset in their storages; collectives() shows
/// whether they do. On the CPU, sums are made in rank order, ((t_0 + t_1) + t_2) + ..., for any
/// size of the tensor and any number of ranks per node, so they do not depend on how a buffer is
/// divided. 16-bit floats are summed in fp32 and rounded once. On a GPU, the order is NCCL's.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view backend() const = 0;
  /// How sums and gathers travel: "node memory", "chain of 2 nodes"; empty where there is one way.
  virtual std::string route() const { return {}; }
  /// What users should know of how this was set up, the same on all ranks; empty for nothing.
  virtual std::string_view remark() const { return {}; }

  /// A zeroed 1-D tensor of `numel` elements, in the memory that this group transfers fastest.
  virtual at::Tensor allocate(std::int64_t numel, at::ScalarType type) = 0;

  /// tensor <- sum over ranks. Each rank sends 2 (N-1)/N of its bytes.
  Work all_reduce(at::Tensor const& tensor);
  /// output [n] <- this rank's part of the sum of input [N n]. Sends (N-1)/N of input.
  Work reduce_scatter(at::Tensor const& output, at::Tensor const& input);
  /// output [N n] <- input [n] of all ranks, in rank order; input may be this rank's part of
  /// output.
  Work all_gather(at::Tensor const& output, at::Tensor const& input);
  /// tensor <- tensor of rank `root`.
  Work broadcast(at::Tensor const& tensor, int root);
  Work barrier();
  /// The log of this rank's calls of these.
  virtual CollectiveLog const& collectives() const { return collectives_; }

  /// What `body` calls: collectives of a graph, which sends as much whenever it runs.
  struct Kept {
    std::vector<CollectiveCall> calls;
    std::int64_t bytes_sent = 0;
  };
  virtual Kept keep(std::function<void()> const& body);
  /// The graph runs again.
  virtual void repeat(Kept const& kept);

  /// Matched by (peer, tag) in order; tag in [0, max_tag]. A rank cannot send to itself.
  virtual Work send(at::Tensor const& tensor, int peer, int tag) = 0;
  virtual Work receive(at::Tensor const& tensor, int peer, int tag) = 0;
  static constexpr int max_tag = 16383;

  /// Memory of `numel` elements on this rank, zeroed, possibly 0 elements, that the others write
  /// and read. Collective; so is its destruction, which must come before that of the communicator.
  /// AgreedError(environment) if it cannot be created.
  virtual std::unique_ptr<RemoteMemory> share_memory(std::int64_t numel, at::ScalarType type);

  /// Bytes that this rank has sent since the communicator was made.
  virtual std::int64_t bytes_sent() const = 0;

 private:
  // Implemented by backends; the arguments are as above.
  virtual Work start_all_reduce(at::Tensor const& tensor) = 0;
  virtual Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) = 0;
  virtual Work start_all_gather(at::Tensor const& output, at::Tensor const& input) = 0;
  virtual Work start_broadcast(at::Tensor const& tensor, int root) = 0;
  virtual Work start_barrier() = 0;

  void note(CollectiveCall const& call);

  CollectiveLog collectives_;
  std::vector<CollectiveCall>* keeping_ = nullptr;  ///< what is called now
};

/// Bytes in a tensor's elements.
inline std::int64_t bytes_of(at::Tensor const& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

/// Where they begin.
inline std::byte* data_of(at::Tensor const& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

}  // namespace stratagem
