#include "trace/overlap.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "support/traces.hpp"

namespace stratagem {
namespace {

constexpr double compute = 0, comm = 1, loader = 2;
constexpr double forward = 0, waiting = 1;  // rows of /names

class Overlap : public ::testing::Test {
 protected:
  Overlap() {
    auto& names = rank_.tables.at("/names");
    names.columns["name"] = h5::Texts{"forward", "comm_exposed"};
    names.rows = 2;
  }
  void span(double name, double lane, double begin, double end, double step = 0) {
    add_row(rank_, "/spans",
            {{"name_id", name},
             {"lane", lane},
             {"t_begin_ns", begin},
             {"t_end_ns", end},
             {"step", step}});
  }
  double share() const { return overlap_share({&rank_}); }

  trace::RankTrace rank_ = empty_trace(0);
};

TEST_F(Overlap, IsWhatComputationDidNotWaitFor) {
  span(forward, compute, 0, 60);
  span(waiting, compute, 60, 100);
  span(forward, comm, 20, 50);
  span(forward, comm, 40, 100);
  EXPECT_DOUBLE_EQ(share(), 0.5) << "80 under way, 40 waited for";
}

TEST_F(Overlap, CountsWhatIsUnderWayAtTheSameTimeOnce) {
  span(forward, compute, 0, 100);
  span(waiting, compute, 100, 101);
  for (double const begin : {0, 10, 20}) span(forward, comm, begin, begin + 20);
  EXPECT_DOUBLE_EQ(share(), 1 - 1.0 / 40);
}

TEST_F(Overlap, CountsWithinTheStepAlone) {
  span(forward, compute, 100, 200, 3);
  span(waiting, compute, 200, 210, 3);
  span(forward, comm, 0, 120, 3);
  span(forward, comm, 190, 400, 3);
  span(forward, loader, 0, 1000, 3);
  span(forward, comm, 500, 600, 4);
  EXPECT_DOUBLE_EQ(share(), 1 - 10.0 / 40) << "a step without computing was not sampled whole";
}

TEST_F(Overlap, IsUnknownWhereNothingCommunicates) {
  EXPECT_TRUE(std::isnan(share()));
  span(forward, compute, 0, 10);
  EXPECT_TRUE(std::isnan(share()));
}

}  // namespace
}  // namespace stratagem
