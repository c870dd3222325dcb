#pragma once

#include <string>

#include <gtest/gtest.h>

#include "comm/factory.hpp"
#include "conformance/training.hpp"
#include "support/world.hpp"

namespace stratagem::test {

/// On all ranks of the test.
inline Trained train_here(Training const& training, CommConfig const& comm = {}) {
  auto const communicator = make_communicator(comm, discover_process(world()), world(), nullptr);
  return train(training, *communicator);
}

/// Which ranks can gather the whole result.
enum class Replicas { everywhere, on_rank_0 };

/// Trains on all ranks of the test and compares the result with `expected`, bit for bit.
inline void expect_result(Training const& training, std::string const& expected, Replicas replicas,
                          CommConfig const& comm = {}) {
  auto const own = fingerprint(train_here(training, comm));
  if (replicas == Replicas::everywhere || world().rank() == 0) {
    EXPECT_EQ(own, expected) << "on rank " << world().rank();
  }
}

}  // namespace stratagem::test
