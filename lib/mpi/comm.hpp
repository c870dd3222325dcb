#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mpi/request.hpp"

namespace stratagem::mpi {

/// A group of ranks. A value: copies share the communicator, the last one frees it.
/// All calls of one process are made by one thread at a time (ThreadLevel::serialized).
class Comm {
 public:
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// The ranks that share a node's memory, in the order of their ranks here. Collective.
  Comm split_node() const;
  /// The ranks with an equal `group`, at least 0, in the order of their ranks here. Collective.
  Comm split(int group) const;
  /// The same ranks, with messages that never mix with those of this communicator. Collective.
  Comm duplicate() const;
  /// The same, never freed: for messages that nobody may have received at its end. Those of a freed
  /// one reach whichever communicator has its number next.
  Comm duplicate_for_good() const;

  void barrier() const;
  /// Broadcasts the `text` of rank `root`. Collective.
  void broadcast(std::string& text, int root) const;
  /// One text per rank, in rank order. Collective.
  std::vector<std::string> all_gather(std::string const& text) const;
  /// The library's own MPI_Allreduce(MPI_SUM), in place; `commbench` compares with it. Collective.
  void library_all_reduce(std::span<float> values) const;

  /// At most max_message bytes; matched by (peer, tag) in order.
  Request send(std::span<std::byte const> bytes, int peer, int tag) const;
  Request receive(std::span<std::byte> bytes, int peer, int tag) const;
  /// Whether a message with this tag, from any rank, has arrived and can be received.
  bool has_message(int tag) const;

  static constexpr std::size_t max_message = std::size_t{1} << 30;
  static constexpr int max_tag = 32767;  ///< the smallest that MPI guarantees

 private:
  friend class NodeMemory;
  friend class Session;
  friend class Window;
  struct Shared;
  explicit Comm(std::shared_ptr<Shared const> shared);
  Comm duplicate(bool owned) const;

  std::shared_ptr<Shared const> shared_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace stratagem::mpi
