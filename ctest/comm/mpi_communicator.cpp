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
#include "comm/mpi/mpi_world.hpp"
#include "support/world.hpp"

namespace {

using namespace std::chrono_literals;
using stratagem::CommAlgorithm;
using stratagem::Communicator;
using stratagem::Error;
using stratagem::ExitCode;
using stratagem::MpiWorld;
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

std::unique_ptr<MpiWorld> world_of(NodeUse const& use, std::chrono::nanoseconds timeout) {
  return std::make_unique<MpiWorld>(world(), stratagem::gpu::Device(), nullptr, timeout, 0ns,
                                    nullptr, use);
}

TEST_P(MpiCommunicator, Does) {
  for (auto const& use : uses()) {
    SCOPED_TRACE(route_of(use));
    auto const all = world_of(use, 60s);
    EXPECT_EQ(all->all().route(), route_of(use));
    GetParam().body(all->all());
  }
}

INSTANTIATE_TEST_SUITE_P(Suite, MpiCommunicator,
                         testing::ValuesIn(stratagem::test::communicator_cases()),
                         stratagem::test::case_name);

std::vector<int> half() {
  return stratagem::test::every_second(world().rank(), world().size());
}

/// The first rank alone, and the others.
std::vector<int> rest() {
  std::vector<int> ranks;
  for (int rank = 1; rank < world().size(); ++rank) ranks.push_back(rank);
  return world().rank() == 0 ? std::vector{0} : ranks;
}

/// What a communicator does, groups of ranks do beside it, which share its memory and its thread.
TEST_P(MpiCommunicator, DoesInGroups) {
  for (auto const& use : uses()) {
    SCOPED_TRACE(route_of(use));
    auto const all = world_of(use, 60s);
    auto& halves = all->group("halves", half());
    auto& others = all->group("others", rest());
    EXPECT_EQ(&all->group("halves", half()), &halves);
    EXPECT_EQ(halves.size(), static_cast<int>(half().size()));
    EXPECT_EQ(half()[static_cast<std::size_t>(halves.rank())], world().rank());
    auto const sum = all->all().allocate(50'000, at::kFloat).fill_(1);
    auto work = all->all().all_reduce(sum);
    GetParam().body(halves);
    GetParam().body(others);
    work.wait_on_host();
    EXPECT_EQ(sum[0].item<float>(), static_cast<float>(world().size()));
  }
}

TEST(MpiCommunicator, GroupsOfANodeUseItsMemory) {
  if (world().size() == 1) return;
  auto const all = world_of({.memory = NodeMemoryMode::required}, 60s);
  auto const route = all->group("halves", half()).route();
  EXPECT_EQ(route, half().size() > 1 ? "node memory" : "");
}

/// Ranks come to two groups in different orders, with more calls than begin at a time.
TEST(MpiCommunicator, GroupsDoNotWaitForEachOther) {
  for (auto const& use : uses()) {
    auto const all = world_of(use, 60s);
    auto& halves = all->group("halves", half());
    std::vector<at::Tensor> sums;
    std::vector<Work> works;
    auto const call = [&](Communicator& comm) {
      for (int i = 0; i < 6; ++i) {
        sums.push_back(comm.allocate(1000, at::kFloat).fill_(1));
        works.push_back(comm.all_reduce(sums.back()));
      }
    };
    bool const first = world().rank() < 2;
    call(first ? all->all() : halves);
    call(first ? halves : all->all());
    for (auto& work : works) work.wait_on_host();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      auto const& comm = (i < 6) == first ? all->all() : halves;
      EXPECT_EQ(sums[i].sum().item<float>(), 1000.0F * static_cast<float>(comm.size()));
    }
  }
}

TEST(MpiCommunicator, BytesOfAWorldAreThoseOfItsGroups) {
  if (world().size() == 1) return;
  auto const all = world_of({}, 60s);
  auto& halves = all->group("halves", half());
  auto const before = all->bytes_sent();
  auto const kept = all->keep([&] {
    halves.all_reduce(halves.allocate(1000, at::kFloat)).wait_on_host();
    all->all().all_reduce(all->all().allocate(1000, at::kFloat)).wait_on_host();
  });
  std::int64_t sent = 0;
  for (auto const& of_group : kept) sent += of_group.bytes_sent;
  EXPECT_EQ(all->bytes_sent() - before, sent);
  EXPECT_EQ(kept.front().calls.size(), 1U);
  auto const fingerprint = all->all().collectives().fingerprint();
  all->repeat(kept);
  EXPECT_NE(all->all().collectives().fingerprint(), fingerprint);
}

/// A rank that never comes does not hang the others for longer than the time they were given.
TEST(MpiCommunicator, AMissingPeerIsAStall) {
  for (auto const& use : uses()) {
    auto const all = world_of(use, 300ms);
    auto& comm = all->all();
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
    auto const all = world_of(use, 20s);
    auto& comm = all->all();
    comm.barrier().wait_on_host();
    if (world().rank() == 1)
      odd(comm);
    else
      even(comm);
    comm.barrier().wait_on_host();
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

/// The message names the group; so it does on ranks that are not in it.
TEST(MpiCommunicator, ADifferenceInAGroupEndsAllRanks) {
  if (world().size() < 3) return;
  for (auto const& use : uses()) {
    std::optional<Error> end;
    try {
      auto const all = world_of(use, 20s);
      auto& others = all->group("others", rest());
      others.all_reduce(others.allocate(world().rank() == 1 ? 8 : 9, at::kFloat)).wait_on_host();
      all->all().barrier().wait_on_host();
    } catch (Error const& error) {
      end = error;
    }
    world().barrier();
    auto const ranks = world().size() == 3 ? "1,2" : "1,2,3";
    expect_mismatch(end,
                    str("collective 0 of others(", ranks, ") is all_reduce of 8 Float on rank 1"));
  }
}

TEST(MpiCommunicator, RanksThatDoNotAgreeOnTheirGroupsAreRefused) {
  if (world().size() < 3) return;
  auto const all = world_of({}, 20s);
  auto const own = world().rank() == 0 ? std::vector{0, 1} : rest();
  try {
    all->group("others", own);
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::mismatch);
    EXPECT_NE(std::string(error.what()).find("others 0,1 on rank 0"), std::string::npos)
        << error.what();
  }
  all->all().barrier().wait_on_host();
}

/// No message shows that anything is wrong: all wait for one another, until time is over.
TEST(MpiCommunicator, AnInquestIsHeldWhenTimeIsOver) {
  if (world().size() < 2) return;
  std::optional<Error> end;
  {
    MpiWorld of_comm(world(), {}, nullptr, 500ms);
    auto& comm = of_comm.all();
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
      MpiWorld of_comm(world(), {}, nullptr, 20s);
      auto& comm = of_comm.all();
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
    MpiWorld of_comm(world(), {}, nullptr, 20s);
    auto& comm = of_comm.all();
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
