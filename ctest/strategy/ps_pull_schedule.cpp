#include <gtest/gtest.h>

#include "base/random.hpp"
#include "strategy/ps/policy/pull_schedule.hpp"

namespace stratagem {
namespace {

/// Pushes, of so many, after which a worker pulls when others make `others` updates per push of its
/// own.
std::vector<int> pulls_of(ServerPolicy const& policy, int pushes, std::int64_t others) {
  PullSchedule pace(policy);
  std::vector<int> pulls;
  std::int64_t version = 0, base = 0;
  for (int push = 0; push < pushes; ++push) {
    version += others;
    bool const now = pace.next();
    pace.learn(version - base);
    ++version;
    if (now) pulls.push_back(push);
    if (now) base = version;
  }
  return pulls;
}

TEST(PsPullSchedule, EveryNth) {
  EXPECT_EQ(pulls_of({}, 4, 1), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(pulls_of({.pull_every = 3}, 9, 1), (std::vector{2, 5, 8}));
}

TEST(PsPullSchedule, ARoundBeginsWithAPull) {
  PullSchedule pace({.pull_every = 2});
  EXPECT_FALSE(pace.next());
  pace.begin_round();
  EXPECT_FALSE(pace.next());
  EXPECT_TRUE(pace.next());
}

TEST(PsPullSchedule, ByTheAgeOfWhatIsCached) {
  PullSchedule pace({.gate = ServerPolicy::Gate::ssp, .staleness = 2, .cached_reads = true});
  auto const pushes_until_a_pull = [&] {
    int pushes = 1;
    for (; !pace.next(); ++pushes) {
    }
    return pushes;
  };
  EXPECT_EQ(pushes_until_a_pull(), 3) << "a round begins with the newest";
  pace.allow(0);
  EXPECT_EQ(pushes_until_a_pull(), 1);
  pace.allow(1);
  EXPECT_EQ(pushes_until_a_pull(), 2);
  pace.begin_round();
  EXPECT_EQ(pushes_until_a_pull(), 3);
}

TEST(PsPullSchedule, ByTheLag) {
  // The first pull is made to learn. Then, of a lag of 5: the third gradient without a pull would
  // be 3 + 2 old with one update of others per push, the second 6 + 1 with three.
  EXPECT_EQ(pulls_of({.pull_at_lag = 5}, 6, 1), (std::vector{0, 2, 4}));
  EXPECT_EQ(pulls_of({.pull_at_lag = 5}, 4, 3), (std::vector{0, 1, 2, 3}));
  // Alone, it is as old as its own pushes.
  EXPECT_EQ(pulls_of({.pull_at_lag = 5}, 12, 0), (std::vector{0, 5, 10}));
}

TEST(PsPullSchedule, FollowsTheLag) {
  PullSchedule pace({.pull_at_lag = 4});
  std::int64_t pulls_when_crowded = 0, pulls_when_alone = 0;
  for (int push = 0; push < 100; ++push) {
    pulls_when_crowded += pace.next() ? 1 : 0;
    pace.learn(3);
  }
  std::int64_t age = 0;
  for (int push = 0; push < 100; ++push) {
    bool const now = pace.next();
    pace.learn(age);
    age = now ? 0 : age + 1;
    pulls_when_alone += now ? 1 : 0;
  }
  EXPECT_EQ(pulls_when_crowded, 100);
  EXPECT_NEAR(static_cast<double>(pulls_when_alone), 25, 1);
}

/// Where others come evenly, no gradient is older than what was asked for, or than one push is.
TEST(PsPullSchedule, KeepsTheLagBelow) {
  for (std::int64_t const wanted : {1, 2, 5, 10, 40})
    for (std::int64_t const others : {0, 1, 3, 7}) {
      PullSchedule pace({.pull_at_lag = wanted});
      std::int64_t version = 0, base = 0, worst = 0;
      for (int push = 0; push < 200; ++push) {
        version += others;
        worst = std::max(worst, version - base);
        bool const now = pace.next();
        pace.learn(version - base);
        ++version;
        if (now) base = version;
      }
      EXPECT_LE(worst, std::max(wanted - 1, others)) << wanted << " " << others;
    }
}

}  // namespace
}  // namespace stratagem
