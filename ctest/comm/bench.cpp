#include "comm/bench.hpp"

#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"

namespace stratagem {
namespace {

constexpr BenchOperation operations[] = {BenchOperation::all_reduce, BenchOperation::reduce_scatter,
                                         BenchOperation::all_gather, BenchOperation::broadcast,
                                         BenchOperation::send_receive};

TEST(Bench, MeasuresAndChecksEveryOperation) {
  for (int ranks = 1; ranks <= 3; ++ranks)
    run_ranks(ranks, 1, [&](Communicator& comm) {
      for (auto const operation : operations) {
        auto const result = bench(comm, operation, 1201 * 4, 0.001);
        EXPECT_EQ(result.wrong, 0);
        EXPECT_EQ(result.bytes, 4 * result.numel);
        EXPECT_LE(result.bytes, 1201 * 4);
        EXPECT_GT(result.bytes, 1201 * 4 - 4 * ranks) << "a whole number of parts";
        EXPECT_GE(result.iterations, 3);
        EXPECT_GT(result.time_s, 0);
        EXPECT_DOUBLE_EQ(result.algbw, static_cast<double>(result.bytes) / result.time_s);
        EXPECT_DOUBLE_EQ(result.busbw, result.algbw * bus_factor(operation, ranks));
      }
    });
}

/// PERFORMANCE.md of nccl-tests.
TEST(Bench, BusFactors) {
  EXPECT_DOUBLE_EQ(bus_factor(BenchOperation::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(BenchOperation::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(BenchOperation::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(BenchOperation::broadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(BenchOperation::send_receive, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(BenchOperation::all_reduce, 1), 0);
}

}  // namespace
}  // namespace stratagem
