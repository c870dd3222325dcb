#pragma once

#include <string>

#include <gtest/gtest.h>

#include "comm/factory.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/training.hpp"
#include "support/world.hpp"

namespace stratagem::test {

/// What one process makes of `training` in the place of `ranks`, without recomputation.
inline std::string emulated(Training training, SerialConfig serial, int ranks) {
  serial.emulate_ranks = ranks;
  training.strategy = serial;
  training.recompute = {};
  SerialCommunicator alone({});
  return fingerprint(train(training, alone));
}

/// Which ranks can gather the whole result.
enum class Replicas { everywhere, on_rank_0 };

/// Trains on all ranks of the test and compares the result with `expected`, bit for bit.
inline void expect_result(Training const& training, std::string const& expected, Replicas replicas,
                          CommConfig const& comm = {}) {
  std::string own;
  {
    auto const communicator = make_communicator(comm, discover_process(world()), world(), nullptr);
    own = fingerprint(train(training, *communicator));
  }
  if (replicas == Replicas::everywhere || world().rank() == 0) {
    EXPECT_EQ(own, expected) << "on rank " << world().rank();
  }
}

}  // namespace stratagem::test
