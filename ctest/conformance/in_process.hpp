#pragma once

#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/local_workers.hpp"

namespace stratagem::test {

/// Of six workers that 2, 3 and 6 ranks play, in several interleavings: what one rank ends with.
inline void expect_same_on_any_ranks(Training const& training) {
  auto const expected = digest_alone(training);
  for (int const ranks : {2, 3, 6})
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      run_ranks(ranks, seed, [&](Communicator& communicator) {
        EXPECT_EQ(digest_on(training, communicator), expected)
            << "rank " << communicator.rank() << " of " << ranks << ", seed " << seed;
      });
}

/// All ranks end with the loss that is not finite `where`, and with the block.
inline void expect_non_finite_loss(Training const& training, int ranks, std::string const& where) {
  run_ranks(ranks, 1, [&](Communicator& communicator) {
    try {
      train(training, communicator);
      FAIL() << "rank " << communicator.rank();
    } catch (AgreedError const& error) {
      EXPECT_EQ(error.code(), ExitCode::non_finite);
      std::string const what = error.what();
      EXPECT_NE(what.find(where), what.npos) << what;
      EXPECT_NE(what.find("output of block "), what.npos) << what;
    }
  });
}

}  // namespace stratagem::test
