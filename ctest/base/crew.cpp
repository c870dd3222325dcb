#include "base/crew.hpp"

#include <numeric>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Crew, DoesEveryPieceOnce) {
  for (int size : {1, 2, 5}) {
    Crew crew(size, "test");
    EXPECT_EQ(crew.size(), size);
    for (std::int64_t count : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
      crew.for_each(count,
                    [&](std::int64_t piece, int) { ++done[static_cast<std::size_t>(piece)]; });
      for (auto const& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Crew, NoTwoThreadsAreTheSameMember) {
  Crew crew(4, "test");
  std::mutex mutex;
  std::vector<std::set<std::thread::id>> threads(4);
  for (int call = 0; call < 50; ++call)
    crew.for_each(64, [&](std::int64_t, int member) {
      std::lock_guard const lock(mutex);
      threads.at(static_cast<std::size_t>(member)).insert(std::this_thread::get_id());
    });
  for (auto const& of_member : threads) EXPECT_LE(of_member.size(), 1u);
  EXPECT_EQ(threads.front(), std::set{std::this_thread::get_id()});
}

TEST(Crew, RethrowsTheErrorOfTheFirstPiece) {
  for (int size : {1, 4}) {
    Crew crew(size, "test");
    for (int call = 0; call < 100; ++call) {
      std::string found;
      try {
        crew.for_each(100, [](std::int64_t piece, int) {
          if (piece >= 7) throw std::runtime_error(std::to_string(piece));
        });
      } catch (std::runtime_error const& error) {
        found = error.what();
      }
      EXPECT_EQ(found, "7");
    }
    std::atomic<int> done = 0;
    crew.for_each(10, [&](std::int64_t, int) { ++done; });
    EXPECT_EQ(done, 10) << "after an error, the next call is as any other";
  }
}

TEST(Crew, HasTheCallingThreadAtLeast) {
  EXPECT_THROW(Crew(0, "test"), std::logic_error);
}

}  // namespace
}  // namespace stratagem
