#pragma once

#include <string>

#include <gtest/gtest.h>

#include "comm/factory.hpp"
#include "conformance/local_workers.hpp"
#include "conformance/training.hpp"
#include "support/world.hpp"

namespace stratagem::test {

/// On all ranks of the test.
inline Trained train_here(Training const& training, CommConfig const& comm = {}) {
  auto const all = make_world(comm, discover_process(world()), world(), nullptr);
  return train(training, *all);
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

/// DDP, with gradients in a code, ends with what the emulator ends with.
inline void expect_coded_equal_to_emulator(Training const& training) {
  auto const& ddp = std::get<DdpConfig>(training.strategy);
  SerialConfig const serial{.micro_batches = ddp.micro_batches, .compression = ddp.compression};
  auto expected = world().rank() == 0 ? emulated(training, world().size(), serial) : std::string();
  world().broadcast(expected, 0);
  expect_result(training, expected, Replicas::everywhere);
}

/// A worker's gradients are coded, but not their sum, which its owner applies; what is gathered of
/// parameters may be.
inline void expect_shards_equal_to_emulator(Training training) {
  constexpr double kib = 1.0 / 1024;
  auto& fsdp = std::get<FsdpConfig>(training.strategy);
  fsdp.unit_mb = training.model == "lenet" ? 4 * kib : kib;
  fsdp.poison = true;
  SerialConfig const serial{.micro_batches = fsdp.micro_batches,
                            .compression = fsdp.compression,
                            .compressed_sums = !fsdp.compression.on(),
                            .parameter_compression = fsdp.parameter_compression};
  auto const expected =
      world().rank() == 0 ? emulated(training, world().size(), serial) : std::string();
  expect_result(training, expected, Replicas::on_rank_0);
}

/// The ranks of the test, which share the workers out evenly, end with what one rank ends with.
inline void expect_same_as_on_one_rank(Training const& training) {
  auto expected = world().rank() == 0 ? digest_alone(training) : "";
  world().broadcast(expected, 0);
  auto const all = make_world({}, discover_process(world()), world(), nullptr);
  EXPECT_EQ(digest_on(training, all->all()), expected) << "on rank " << world().rank();
}

}  // namespace stratagem::test
