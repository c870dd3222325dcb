#include <gtest/gtest.h>

#include "strategy/ps/offline/cluster_clock.hpp"
#include "strategy/ps/policy/server_policy.hpp"

namespace stratagem {
namespace {

using Gate = ServerPolicy::Gate;

/// What became of a policy's pushes on a cluster.
struct Course {
  std::vector<int> order;  ///< of workers
  std::vector<std::int64_t> pushes;
  double time = 0;
  std::int64_t most_ahead = 0;
};

/// Lets each worker push `share` times.
Course run(ServerPolicy const& policy, ClusterModel const& model, int workers, std::int64_t share) {
  ServerClock server(policy, workers);
  ClusterClock cluster(model, workers);
  Course course{.pushes = std::vector<std::int64_t>(static_cast<std::size_t>(workers))};
  for (int worker = 0; worker < workers; ++worker) cluster.start(worker, 1, true);
  while (auto const worker = cluster.next()) {
    static_cast<void>(server.push(*worker, {}));
    course.order.push_back(*worker);
    auto& own = course.pushes[static_cast<std::size_t>(*worker)];
    ++own;
    course.most_ahead = std::max(course.most_ahead, own - std::ranges::min(course.pushes));
    for (auto free = server.release(); !free.empty(); free = server.release())
      for (int const next : free) {
        if (course.pushes[static_cast<std::size_t>(next)] < share)
          cluster.start(next, 1, true);
        else
          static_cast<void>(server.finish(next));
      }
  }
  EXPECT_TRUE(server.all_finished());
  course.time = cluster.now();
  return course;
}

TEST(PsClusterClock, WithoutJitterWorkersTakeTurns) {
  auto const course = run({}, {.jitter = 0, .message = 0.25, .update = 0}, 3, 2);
  EXPECT_EQ(course.order, (std::vector{0, 1, 2, 0, 1, 2}));
  EXPECT_DOUBLE_EQ(course.time, 3) << "two passes with two messages each";
}

TEST(PsClusterClock, ABusyServerTakesPushesOneByOne) {
  auto const course = run({}, {.jitter = 0, .message = 0, .update = 0.5}, 4, 1);
  EXPECT_DOUBLE_EQ(course.time, 1 + 4 * 0.5);
}

TEST(PsClusterClock, TheSeedDecidesTheOrder) {
  ClusterModel model{.jitter = 0.5};
  auto const one = run({}, model, 5, 20).order;
  EXPECT_EQ(run({}, model, 5, 20).order, one);
  model.seed = 2;
  EXPECT_NE(run({}, model, 5, 20).order, one);
}

TEST(PsClusterClock, BoundedStalenessWaitsForASlowWorker) {
  ClusterModel const model{.jitter = 0.1, .slow_worker = 0, .slow = 4};
  auto const free = run({}, model, 4, 50);
  auto const bound = run({.gate = Gate::ssp, .staleness = 2}, model, 4, 50);
  EXPECT_GT(free.most_ahead, 10);
  EXPECT_LE(bound.most_ahead, 3);
}

TEST(PsClusterClock, AThousandWorkersComeToAnEnd) {
  ClusterModel const model{.jitter = 0.3, .slow_worker = 7, .slow = 3, .update = 1e-4};
  for (auto const& policy :
       {ServerPolicy{}, ServerPolicy{.gate = Gate::ssp, .staleness = 2},
        ServerPolicy{.lag_cap = 1024}, ServerPolicy{.gate = Gate::backup, .count = 1000},
        ServerPolicy{.gate = Gate::softsync, .count = 64}}) {
    auto const course = run(policy, model, 1024, 10);
    EXPECT_EQ(std::ranges::count(course.pushes, 10), 1024);
  }
}

}  // namespace
}  // namespace stratagem
