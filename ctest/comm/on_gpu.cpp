#include <gtest/gtest.h>

#include "comm/communicator_suite.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "comm/nccl/nccl_world.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "support/gpus.hpp"
#include "support/world.hpp"

// Communicators of real GPUs.
namespace {

using namespace std::chrono_literals;
using stratagem::test::CommunicatorCase;
using stratagem::test::own_gpu;
using stratagem::test::world;

class OnGpu : public testing::TestWithParam<CommunicatorCase> {
 protected:
  void SetUp() override {
    if (!own_gpu()) GTEST_SKIP() << "needs a GPU";
  }
};

TEST_P(OnGpu, SerialDoes) {
  if (world().size() > 1) return;
  stratagem::SerialCommunicator comm(*own_gpu());
  GetParam().body(comm);
}

TEST_P(OnGpu, MpiDoes) {
  stratagem::MpiWorld of_comm(world(), *own_gpu(), nullptr, 60s);
  auto& comm = of_comm.all();
  GetParam().body(comm);
}

/// With more than two ranks NCCL adds in an order of its own.
TEST_P(OnGpu, NcclDoes) {
  if (world().size() > 2) return;
  if (auto const lacks = stratagem::test::what_nccl_lacks()) GTEST_SKIP() << *lacks;
  auto const nccl = stratagem::make_nccl_world(world(), *own_gpu(), nullptr, 60s);
  GetParam().body(nccl->all());
}

INSTANTIATE_TEST_SUITE_P(Suite, OnGpu, testing::ValuesIn(stratagem::test::communicator_cases()),
                         stratagem::test::case_name);

}  // namespace
