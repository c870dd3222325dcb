#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/work/periodic_task.hpp"
#include "mpi/comm.hpp"
#include "mpi/node_memory.hpp"
#include "trace/heartbeat_status.hpp"

namespace stratagem {

/// What can be wrong with a rank.
enum class Finding {
  none,
  stalled,   ///< computes forever, without waiting for others
  mute,      ///< its thread that communicates does not respond
  stopped,   ///< a signal has stopped its process
  silent,    ///< its process does not run, for an unknown reason
  gone,      ///< its process no longer exists
  orphaned,  ///< its launcher no longer exists
};

enum class Presence { absent, watched, left };

/// A rank, as seen by the others of its node.
struct Slot {
  trace::Sign sign;
  std::atomic<int> rank = 0;
  std::atomic<std::int64_t> process = 0;         ///< 0: represents another node
  std::atomic<std::uint64_t> process_space = 0;  ///< process ids are comparable if it is equal
  std::atomic<bool> vital = true;                ///< the others cannot continue without it
  std::atomic<Presence> presence = Presence::absent;
  std::atomic<std::uint64_t> beats = 0;  ///< of its watchdog
  std::atomic<Finding> finding = Finding::none;
  std::atomic<std::int64_t> found_after_ns = 0;
  std::atomic<bool> has_spoken = false;  ///< it is ending, and has reported all that it had to
};

/// The slots of the ranks of one node, in shared memory. With several nodes, the first rank of each
/// has one slot more, which represents the previous node.
class StatusTable {
 public:
  /// Collective; so is its destruction, except while an exception unwinds.
  explicit StatusTable(mpi::Comm const& world);

  /// By rank on the node.
  std::vector<Slot*> const& slots() const { return slots_; }
  /// The periodic_task that exchanges heartbeats with the other nodes. It must be called as long as
  /// the status_table lives. Null if this rank does not do it.
  std::unique_ptr<PeriodicTask> ring();
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
