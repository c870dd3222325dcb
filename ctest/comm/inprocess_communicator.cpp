#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/communicator_suite.hpp"
#include "comm/inprocess/inprocess_world.hpp"

namespace {

using stratagem::Communicator;
using stratagem::Error;
using stratagem::ExitCode;
using stratagem::run_ranks;
using stratagem::test::CommunicatorCase;

class InprocessCommunicator : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(InprocessCommunicator, Does) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    SCOPED_TRACE(ranks);
    run_ranks(ranks, 7, [](Communicator& comm) { GetParam().body(comm); });
  }
}

INSTANTIATE_TEST_SUITE_P(Suite, InprocessCommunicator,
                         testing::ValuesIn(stratagem::test::communicator_cases()),
                         stratagem::test::case_name);

/// The order in which ranks get past their sends and barriers.
std::vector<int> interleaving(std::uint64_t seed) {
  std::vector<int> order;
  run_ranks(3, seed, [&](Communicator& comm) {
    for (int i = 0; i < 20; ++i) {
      auto const work = comm.barrier();
      order.push_back(comm.rank());
    }
  });
  return order;
}

TEST(InprocessCommunicator, IsReplayedBySeed) {
  EXPECT_EQ(interleaving(1), interleaving(1));
  EXPECT_NE(interleaving(1), interleaving(2));
}

/// What `body` ends with on each rank.
std::vector<std::optional<ExitCode>> codes(int ranks, std::function<void(Communicator&)> body) {
  std::vector<std::optional<ExitCode>> codes(static_cast<std::size_t>(ranks));
  try {
    run_ranks(ranks, 3, [&](Communicator& comm) {
      try {
        body(comm);
      } catch (Error const& error) {
        codes[static_cast<std::size_t>(comm.rank())] = error.code();
        throw;
      }
    });
  } catch (Error const&) {
  }
  return codes;
}

using Codes = std::vector<std::optional<ExitCode>>;

TEST(InprocessCommunicator, DifferentCollectivesEndAllRanks) {
  auto const all = Codes(3, ExitCode::mismatch);
  EXPECT_EQ(codes(3,
                  [](Communicator& comm) {
                    auto const tensor = at::zeros({comm.rank() == 1 ? 5 : 4}, at::kFloat);
                    comm.all_reduce(tensor).wait_on_host();
                  }),
            all);
  EXPECT_EQ(codes(3,
                  [](Communicator& comm) {
                    auto const type = comm.rank() == 2 ? at::kDouble : at::kFloat;
                    comm.all_reduce(at::zeros({4}, type)).wait_on_host();
                  }),
            all);
  EXPECT_EQ(codes(3,
                  [](Communicator& comm) {
                    if (comm.rank() == 0)
                      comm.barrier().wait_on_host();
                    else
                      comm.broadcast(at::zeros({4}, at::kFloat), 0).wait_on_host();
                  }),
            all);
}

TEST(InprocessCommunicator, MismatchNamesBothSides) {
  try {
    run_ranks(2, 1, [](Communicator& comm) {
      comm.broadcast(at::zeros({4 + comm.rank()}, at::kFloat), 0).wait_on_host();
    });
    FAIL() << "no error";
  } catch (Error const& error) {
    std::string const text = error.what();
    EXPECT_NE(text.find("broadcast of 4 Float from rank 0 on rank 0"), std::string::npos) << text;
    EXPECT_NE(text.find("broadcast of 5 Float from rank 0 on rank 1"), std::string::npos) << text;
  }
}

TEST(InprocessCommunicator, WaitingForOneAnotherEndsAllRanks) {
  auto const waiting = [](Communicator& comm) {
    auto const tensor = at::zeros({1}, at::kFloat);
    comm.receive(tensor, (comm.rank() + 1) % comm.size(), 0).wait_on_host();
  };
  EXPECT_EQ(codes(3, waiting), Codes(3, ExitCode::stall));
  try {
    run_ranks(2, 1, waiting);
    FAIL() << "no error";
  } catch (Error const& error) {
    std::string const text = error.what();
    EXPECT_NE(text.find("rank 0 waits for receive from rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 waits for receive from rank 0"), std::string::npos) << text;
  }
}

TEST(InprocessCommunicator, ARankThatEndsEarlyIsAStall) {
  EXPECT_EQ(codes(2,
                  [](Communicator& comm) {
                    if (comm.rank() == 1) comm.barrier().wait_on_host();
                  }),
            (Codes{std::nullopt, ExitCode::stall}));
}

TEST(InprocessCommunicator, AFailingRankEndsTheOthers) {
  EXPECT_EQ(codes(3,
                  [](Communicator& comm) {
                    if (comm.rank() == 1) throw Error(ExitCode::bad_data, "broken");
                    comm.barrier().wait_on_host();
                  }),
            (Codes{ExitCode::peer_lost, ExitCode::bad_data, ExitCode::peer_lost}));
  EXPECT_THROW(run_ranks(2, 1,
                         [](Communicator& comm) {
                           if (comm.rank() == 1) throw std::runtime_error("first");
                           comm.barrier().wait_on_host();
                         }),
               std::runtime_error);
}

TEST(InprocessCommunicator, ARankThatDiesInADestructorEndsTheOthers) {
  auto const leave_unawaited = [](Communicator& comm) {
    auto const number = at::ones({1});
    if (comm.rank() == 1) auto const unawaited = comm.send(number, 0, 0);
    if (comm.rank() == 0) comm.receive(number, 1, 0).wait_on_host();
  };
  stratagem::Death const death{.rank = 1, .calls = 1};  // it begins to send and dies when it waits
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    try {
      run_ranks(2, seed, leave_unawaited, death);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::peer_lost) << error.what();
      ++lost;
    }
  }
  EXPECT_EQ(lost, 20);
}

}  // namespace
