#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/watchdog/status_table.hpp"
#include "comm/work/periodic_task.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// Heartbeats between nodes: the first ranks of all nodes form a ring, and each sends a counter to
/// the next one, twice a second, from the thread that communicates. So the silence of that thread
/// shows, too. A silent node is noticed by the next one.
class HeartbeatRing final : public PeriodicTask {
 public:
  /// Counters from `previous` go to the beats of `upstream`, which must outlive the ring. `comm`
  /// must have no other messages. Both neighbours must make a ring.
  HeartbeatRing(mpi::Comm comm, int previous, int next, Slot& upstream);

  void beat() override;
  bool finish() override;

 private:
  using Count = std::array<std::byte, sizeof(std::uint64_t)>;

  void send(std::uint64_t count);
  void receive();

  mpi::Comm comm_;
  int previous_, next_;
  Slot& upstream_;
  std::uint64_t count_ = 0;
  std::int64_t sent_ns_ = 0;
  bool said_farewell_ = false, heard_farewell_ = false;
  Count outgoing_{}, incoming_{};
  mpi::Request sent_, heard_;
};

}  // namespace stratagem
