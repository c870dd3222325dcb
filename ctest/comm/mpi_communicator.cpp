#include "comm/mpi/mpi_communicator.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/communicator_suite.hpp"
#include "support/world.hpp"

namespace {

using namespace std::chrono_literals;
using stratagem::CommAlgorithm;
using stratagem::Communicator;
using stratagem::Error;
using stratagem::ExitCode;
using stratagem::NodeMemoryMode;
using stratagem::NodeUse;
using stratagem::str;
using stratagem::Work;
using stratagem::test::CommunicatorCase;
using stratagem::test::world;

/// By messages within a node and between nodes, in node memory, and over as many nodes of 1 and 2
/// ranks as there are.
std::vector<NodeUse> uses() {
  std::vector<NodeUse> all{{.memory = NodeMemoryMode::off},
                           {.memory = NodeMemoryMode::off, .ranks_per_node = 1},
                           {.memory = NodeMemoryMode::required}};
  for (int ranks : {1, 2})
    if (world().size() > ranks && world().size() % ranks == 0)
      all.push_back({NodeMemoryMode::required, CommAlgorithm::chain, ranks});
  return all;
}

std::string route_of(NodeUse const& use) {
  if (use.memory == NodeMemoryMode::off) return "messages";
  if (use.ranks_per_node > 0)
    return str("chain of ", world().size() / use.ranks_per_node, " nodes");
  return "node memory";
}

class MpiCommunicator : public testing::TestWithParam<CommunicatorCase> {};

std::unique_ptr<stratagem::MpiCommunicator> communicator(NodeUse const& use,
                                                         std::chrono::nanoseconds timeout) {
  return std::make_unique<stratagem::MpiCommunicator>(world(), stratagem::gpu::Device(), nullptr,
                                                      timeout, 0ns, nullptr, use);
}

TEST_P(MpiCommunicator, Does) {
  for (auto const& use : uses()) {
    SCOPED_TRACE(route_of(use));
    auto const comm = communicator(use, 60s);
    EXPECT_EQ(comm->route(), route_of(use));
    GetParam().body(*comm);
  }
}

INSTANTIATE_TEST_SUITE_P(Suite, MpiCommunicator,
                         testing::ValuesIn(stratagem::test::communicator_cases()),
                         stratagem::test::case_name);

/// A rank that never comes does not hang the others for longer than the time they were given.
TEST(MpiCommunicator, AMissingPeerIsAStall) {
  for (auto const& use : uses()) {
    auto const made = communicator(use, 300ms);
    auto& comm = *made;
    if (world().rank() != 0) {
      auto work = comm.all_reduce(comm.allocate(1000, at::kFloat));
      try {
        work.wait_on_host();
        FAIL() << "no error";
      } catch (Error const& error) {
        EXPECT_EQ(error.code(), ExitCode::stall);
        EXPECT_NE(std::string(error.what()).find("all_reduce"), std::string::npos);
      }
      EXPECT_THROW(comm.barrier().wait_on_host(), Error) << "nothing goes on after a failure";
    }
    world().barrier();
  }
}

/// What a wait ends with where rank 1 calls `odd` and the others `even`; nothing for no error.
template <class Even, class Odd>
std::optional<Error> end_of(NodeUse const& use, Even even, Odd odd) {
  std::optional<Error> end;
  try {
    auto const comm = communicator(use, 20s);
    comm->barrier().wait_on_host();
    if (world().rank() == 1)
      odd(*comm);
    else
      even(*comm);
    comm->barrier().wait_on_host();
  } catch (Error const& error) {
    end = error;
  }
  world().barrier();
  return end;
}

void expect_mismatch(std::optional<Error> const& end, std::string const& what) {
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code(), ExitCode::mismatch) << end->what();
  EXPECT_NE(std::string(end->what()).find(what), std::string::npos) << end->what();
}

/// All ranks hear of it at once, with both sides, and not only when their time is over.
TEST(MpiCommunicator, DifferentSizesEndAllRanks) {
  if (world().size() < 2) return;
  auto const sum_of = [](std::int64_t numel) {
    return [numel](Communicator& comm) {
      comm.all_reduce(comm.allocate(numel, at::kFloat)).wait_on_host();
    };
  };
  for (auto const& use : uses())
    for (std::int64_t const odd : {0, 400, 4'000'000})
      expect_mismatch(end_of(use, sum_of(40'000), sum_of(odd)),
                      str("all_reduce of ", odd, " Float on rank 1"));
}

TEST(MpiCommunicator, ASkippedCollectiveEndsAllRanks) {
  if (world().size() < 2) return;
  auto const call = [](bool all) {
    return [all](Communicator& comm) {
      auto const large = comm.allocate(1000, at::kFloat), small = comm.allocate(100, at::kFloat);
      auto first = all ? comm.all_reduce(large) : Work();
      comm.all_reduce(small).wait_on_host();
      first.wait_on_host();
    };
  };
  for (auto const& use : uses())
    expect_mismatch(
        end_of(use, call(true), call(false)),
        "collective 1 is all_reduce of 100 Float on rank 1 and all_reduce of 1000 Float");
}

/// No message shows that anything is wrong: all wait for one another, until time is over.
TEST(MpiCommunicator, AnInquestIsHeldWhenTimeIsOver) {
  if (world().size() < 2) return;
  std::optional<Error> end;
  {
    stratagem::MpiCommunicator comm(world(), {}, nullptr, 500ms);
    try {
      comm.broadcast(at::zeros({8}, at::kFloat), world().rank() == 0 ? 1 : 0).wait_on_host();
    } catch (Error const& error) {
      end = error;
    }
  }
  world().barrier();
  expect_mismatch(end, "broadcast of 8 Float from rank 1 on rank 0");
}

/// Messages, too, are not cut or left half filled.
TEST(MpiCommunicator, AMessageOfAnotherSizeIsRefused) {
  if (world().size() < 2) return;
  for (std::int64_t const sent : {10, 1000}) {
    std::optional<Error> end;
    {
      stratagem::MpiCommunicator comm(world(), {}, nullptr, 20s);
      try {
        if (world().rank() == 0) comm.send(at::zeros({sent}, at::kFloat), 1, 3).wait_on_host();
        if (world().rank() == 1) comm.receive(at::zeros({100}, at::kFloat), 0, 3).wait_on_host();
      } catch (Error const& error) {
        end = error;
      }
      world().barrier();
    }
    if (world().rank() == 1) {
      ASSERT_TRUE(end.has_value());
      EXPECT_EQ(end->code(), ExitCode::mismatch) << end->what();
    }
  }
}

/// What a rank that waits for long tells its neighbour may arrive when their communicator is gone.
TEST(MpiCommunicator, WhatAnEarlierOneToldIsNotTakenForAMismatch) {
  if (world().size() < 2) return;
  for (std::int64_t const size : {1, 2}) {
    stratagem::MpiCommunicator comm(world(), {}, nullptr, 20s);
    auto const tensor = at::zeros({size}, at::kFloat);
    comm.all_reduce(tensor).wait_on_host();
    if (world().rank() == 0)
      std::this_thread::sleep_for(100ms);  // the others look around meanwhile
    comm.all_reduce(tensor).wait_on_host();
    if (world().rank() == 0) comm.receive(tensor, 1, 3).wait_on_host();
    if (world().rank() == 1) {
      std::this_thread::sleep_for(1200ms);
      comm.send(tensor, 0, 3).wait_on_host();
    }
  }
}

}  // namespace
