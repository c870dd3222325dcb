#include "comm/serial/serial_communicator.hpp"

#include <gtest/gtest.h>

#include "comm/communicator_suite.hpp"

namespace {

using stratagem::test::CommunicatorCase;

class SerialCommunicator : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(SerialCommunicator, Does) {
  stratagem::SerialCommunicator comm(stratagem::gpu::Device{});
  GetParam().body(comm);
}

INSTANTIATE_TEST_SUITE_P(Suite, SerialCommunicator,
                         testing::ValuesIn(stratagem::test::communicator_cases()),
                         stratagem::test::case_name);

}  // namespace
