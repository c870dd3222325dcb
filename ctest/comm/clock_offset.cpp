#include "comm/clock_offset.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "comm/mpi/mpi_world.hpp"
#include "support/world.hpp"

namespace stratagem {
namespace {

/// All ranks of this test share one clock: its offset is zero within the uncertainty.
TEST(ClockOffset, IsZeroOnOneHost) {
  MpiWorld of_comm(test::world(), {}, nullptr, std::chrono::seconds(60));
  auto& comm = of_comm.all();
  auto const sample = measure_clock_offset(comm);
  if (comm.rank() == 0) {
    EXPECT_EQ(sample.offset_to_rank0, 0);
    EXPECT_EQ(sample.uncertainty, 0);
  } else {
    EXPECT_LE(std::abs(sample.offset_to_rank0), sample.uncertainty);
    EXPECT_GT(sample.uncertainty, 0);
    EXPECT_LT(sample.uncertainty, 100'000'000) << "the quickest of many trips";
  }
}

}  // namespace
}  // namespace stratagem
