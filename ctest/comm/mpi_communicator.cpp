#include "comm/mpi/mpi_communicator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/communicator_suite.hpp"
#include "support/world.hpp"

namespace {

using namespace std::chrono_literals;
using stratagem::Error;
using stratagem::ExitCode;
using stratagem::test::CommunicatorCase;
using stratagem::test::world;

class MpiCommunicator : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(MpiCommunicator, Does) {
  stratagem::MpiCommunicator comm(world(), {}, nullptr, 60s);
  GetParam().body(comm);
}

INSTANTIATE_TEST_SUITE_P(Suite, MpiCommunicator,
                         testing::ValuesIn(stratagem::test::communicator_cases()),
                         stratagem::test::case_name);

/// A rank that never comes does not hang the others for longer than the time they were given.
TEST(MpiCommunicator, AMissingPeerIsAStall) {
  {
    stratagem::MpiCommunicator comm(world(), {}, nullptr, 300ms);
    if (world().rank() != 0) {
      auto const tensor = at::zeros({1000}, at::kFloat);
      auto work = comm.all_reduce(tensor);
      try {
        work.wait_on_host();
        FAIL() << "no error";
      } catch (Error const& error) {
        EXPECT_EQ(error.code(), ExitCode::stall);
        EXPECT_NE(std::string(error.what()).find("all_reduce"), std::string::npos);
      }
      EXPECT_THROW(comm.barrier().wait_on_host(), Error) << "nothing goes on after a failure";
    }
  }
  world().barrier();
}

}  // namespace
