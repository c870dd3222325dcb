#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/watchdog/board.hpp"
#include "comm/work/pulse.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// How nodes know of each other that they live: the first ranks of all nodes stand in a ring, and
/// each sends the next one a count, twice a second, from the thread that talks to other ranks. So
/// that thread's silence shows, too. A node that falls silent is found by the one after it.
class NodeRing final : public Pulse {
 public:
  /// Counts from `previous` go to the beats of `upstream`, which outlives the ring. `comm` has no
  /// other messages. Made by both neighbours.
  NodeRing(mpi::Comm comm, int previous, int next, Slot& upstream);

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
