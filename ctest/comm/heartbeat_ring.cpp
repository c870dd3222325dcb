#include "comm/watchdog/heartbeat_ring.hpp"

#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "support/world.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

/// Every rank plays a node.
std::unique_ptr<PeriodicTask> ring_of(mpi::Comm const& world, Slot& upstream) {
  int const size = world.size(), rank = world.rank();
  return std::make_unique<HeartbeatRing>(world.duplicate(), (rank + size - 1) % size,
                                         (rank + 1) % size, upstream);
}

TEST(HeartbeatRing, TellsThatTheNodeBeforeLivesUntilItLeaves) {
  auto const& world = test::world();
  Slot upstream;
  {
    MpiWorld of_communicator(world, {}, nullptr, 60s, {}, ring_of(world, upstream));
    auto& communicator = of_communicator.all();
    auto const deadline = monotonic_ns() + 20'000'000'000;
    while (upstream.beats < 3 && monotonic_ns() < deadline) std::this_thread::sleep_for(10ms);
    EXPECT_GE(upstream.beats, 3U);  // while nothing else is under way
    EXPECT_EQ(upstream.presence, Presence::watched);
    auto const beats = upstream.beats.load();
    auto const end = monotonic_ns() + 1'500'000'000;
    bool goes_on = true;  // on all ranks
    while (goes_on) {
      auto const word = communicator.allocate(1, at::kFloat);
      word.fill_(monotonic_ns() < end ? 1 : 0);
      communicator.all_reduce(word).wait_on_host();
      goes_on = *word.data_ptr<float>() > 0;
    }
    EXPECT_GT(upstream.beats, beats);  // and while the thread is busy
  }
  EXPECT_EQ(upstream.presence, Presence::left);
}

TEST(HeartbeatRing, ANodeThatFallsSilentIsNotHeardOf) {
  auto const& world = test::world();
  Slot upstream;
  auto const ring = ring_of(world, upstream);
  bool const silent = world.rank() == 0;
  auto const end = monotonic_ns() + 2'000'000'000;
  for (bool spoke = false; monotonic_ns() < end; std::this_thread::sleep_for(10ms)) {
    if (silent && spoke) continue;
    ring->beat();
    spoke = true;
  }
  bool const follows = world.rank() == 1;
  EXPECT_TRUE(follows ? upstream.beats == 1U : silent || upstream.beats >= 3U) << upstream.beats;
  while (!ring->finish()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(upstream.presence, Presence::left);
}

}  // namespace
}  // namespace stratagem
