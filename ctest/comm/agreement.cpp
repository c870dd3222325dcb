#include "comm/agreement.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "comm/inprocess/inprocess_world.hpp"

namespace stratagem {
namespace {

using Failures = std::vector<std::optional<Error>>;

TEST(Agreement, GathersTextsInRankOrder) {
  run_ranks(3, 1, [](Communicator& comm) {
    std::string const texts[] = {"zero", "", std::string("two\0too", 7)};
    auto const gathered = gather_texts(comm, texts[comm.rank()]);
    EXPECT_EQ(gathered, std::vector<std::string>(std::begin(texts), std::end(texts)));
  });
}

TEST(Agreement, NoFailureIsNoError) {
  EXPECT_FALSE(joint_error(Failures(3)));
  run_ranks(3, 1, [](Communicator& comm) { agree(comm, std::nullopt); });
}

TEST(Agreement, LowestFailingRankSpeaks) {
  Failures failures(4);
  failures[1] = Error(ExitCode::bad_data, "no file");
  failures[3] = Error(ExitCode::io, "full");
  auto const error = joint_error(failures);
  EXPECT_EQ(error->code(), ExitCode::bad_data);
  EXPECT_STREQ(error->what(), "ranks 1, 3: no file");
}

TEST(Agreement, WhatAllRanksFindIsSaidAsIs) {
  auto const error = joint_error(Failures(2, Error(ExitCode::usage, "unknown key")));
  EXPECT_STREQ(error->what(), "unknown key");
}

TEST(Agreement, OneFailureEndsAllRanksAlike) {
  int ended = 0;
  EXPECT_THROW(
      run_ranks(3, 1,
                [&](Communicator& comm) {
                  std::optional<Error> own;
                  if (comm.rank() == 2)
                    own = Error(ExitCode::bad_data, "truncated", "7 bytes", "fetch it again");
                  try {
                    agree(comm, own);
                  } catch (Error const& error) {
                    EXPECT_EQ(error.code(), ExitCode::bad_data);
                    EXPECT_STREQ(error.what(), "rank 2: truncated (7 bytes); fetch it again");
                    ++ended;
                    throw;
                  }
                }),
      Error);
  EXPECT_EQ(ended, 3);
}

TEST(Agreement, DifferentValuesNameTheRanks) {
  run_ranks(3, 1, [](Communicator& comm) {
    require_equal(comm, "the plan", "same", ExitCode::mismatch, "");
  });
  int ended = 0;
  EXPECT_THROW(run_ranks(3, 1,
                         [&](Communicator& comm) {
                           try {
                             require_equal(comm, "the data set", comm.rank() == 1 ? "b" : "a",
                                           ExitCode::bad_data, "use one copy");
                           } catch (Error const& error) {
                             EXPECT_STREQ(error.what(),
                                          "the data set of rank 1 is not that of rank 0 "
                                          "(b instead of a); use one copy");
                             ++ended;
                             throw;
                           }
                         }),
               Error);
  EXPECT_EQ(ended, 3);
}

}  // namespace
}  // namespace stratagem
