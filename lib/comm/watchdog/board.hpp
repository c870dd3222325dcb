#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/work/pulse.hpp"
#include "mpi/comm.hpp"
#include "mpi/node_memory.hpp"
#include "trace/beacon.hpp"

namespace stratagem {

/// What is wrong with a rank.
enum class Finding {
  none,
  stalled,   ///< it computes on and on, and waits for nobody
  mute,      ///< its thread that talks to other ranks stands still
  stopped,   ///< a signal has stopped its process
  silent,    ///< its process does not run, for no known reason
  gone,      ///< its process is no more
  orphaned,  ///< its launcher is no more
};

enum class Presence { absent, watched, left };

/// A rank, as the others of its node see it.
struct Slot {
  trace::Sign sign;
  std::atomic<int> rank = 0;
  std::atomic<std::int64_t> process = 0;  ///< 0: stands for a node of others
  std::atomic<std::uint64_t> process_space =
      0;                           ///< ids of processes mean the same where it is equal
  std::atomic<bool> vital = true;  ///< the others cannot go on without it
  std::atomic<Presence> presence = Presence::absent;
  std::atomic<std::uint64_t> beats = 0;  ///< of its watchdog
  std::atomic<Finding> finding = Finding::none;
  std::atomic<std::int64_t> found_after_ns = 0;
  std::atomic<bool> has_spoken = false;  ///< it ends, and has said all that it had to say
};

/// The slots of the ranks of one node, in memory that they share. On the first rank of each of
/// several nodes, one more stands for the node before it.
class Board {
 public:
  /// Collective, and so is its end, but for an exception's.
  explicit Board(mpi::Comm const& world);

  /// By rank on the node.
  std::vector<Slot*> const& slots() const { return slots_; }
  /// What brings news of the node before, to be beaten as long as the board lives; none where that
  /// is not this rank's part.
  std::unique_ptr<Pulse> ring();
  std::size_t own() const { return own_; }
  trace::Sign& own_sign() const { return slots_[own_]->sign; }

 private:
  mpi::Comm node_;
  mpi::NodeMemory memory_;
  std::size_t own_;
  std::vector<Slot*> slots_;
  std::optional<mpi::Comm> among_nodes_;
  int previous_ = 0, next_ = 0;  ///< first ranks of the neighbour nodes
  Slot upstream_;
};

}  // namespace stratagem
