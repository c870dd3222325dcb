#include "comm/inprocess/turns.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

/// Runs `body(player)` in turns.
template <class Body>
void play(Turns& turns, int players, Body body) {
  std::vector<std::jthread> threads;
  for (int player = 0; player < players; ++player)
    threads.emplace_back([&, player] {
      turns.enter(player);
      body(player);
      turns.leave(player);
    });
}

TEST(Turns, OnlyOneRuns) {
  Turns turns(4, 1);
  std::atomic<int> running = 0, most = 0;
  play(turns, 4, [&](int player) {
    for (int i = 0; i < 50; ++i) {
      most = std::max(most.load(), ++running);
      std::this_thread::yield();
      --running;
      turns.pause(player);
    }
  });
  EXPECT_EQ(most, 1);
}

std::vector<int> order(std::uint64_t seed) {
  Turns turns(3, seed);
  std::vector<int> order;
  play(turns, 3, [&](int player) {
    for (int i = 0; i < 20; ++i) {
      order.push_back(player);
      turns.pause(player);
    }
  });
  return order;
}

TEST(Turns, SeedDecides) {
  EXPECT_EQ(order(5), order(5));
  EXPECT_NE(order(5), order(6));
}

TEST(Turns, WaitsForItsCondition) {
  Turns turns(2, 1);
  bool done = false;
  std::vector<std::string> events;
  play(turns, 2, [&](int player) {
    if (player == 0) {
      turns.wait_until(0, "the other", [&] { return done; });
      events.push_back("seen");
    } else {
      for (int i = 0; i < 5; ++i) turns.pause(1);
      events.push_back("done");
      done = true;
    }
  });
  EXPECT_EQ(events, (std::vector<std::string>{"done", "seen"}));
}

TEST(Turns, NobodyReadyIsAStallOfAll) {
  Turns turns(2, 1);
  std::atomic<int> stalls = 0;
  play(turns, 2, [&](int player) {
    try {
      turns.wait_until(player, "godot", [] { return false; });
    } catch (Error const& error) {
      stalls += error.code() == ExitCode::stall &&
                std::string(error.what()).find("rank 1 waits for godot") != std::string::npos;
    }
  });
  EXPECT_EQ(stalls, 2);
}

TEST(Turns, FailureEndsEveryWait) {
  Turns turns(3, 1);
  std::atomic<int> failed = 0;
  play(turns, 3, [&](int player) {
    if (player == 2) return turns.fail(std::make_exception_ptr(std::runtime_error("broken")));
    EXPECT_THROW(turns.wait_until(player, "nothing", [] { return false; }), std::runtime_error);
    ++failed;
  });
  EXPECT_EQ(failed, 2);
}

}  // namespace
}  // namespace stratagem
