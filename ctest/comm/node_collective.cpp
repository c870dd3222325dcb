#include "comm/node/node_collective.hpp"

#include <memory>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "comm/arenas.hpp"
#include "comm/communicator_suite.hpp"

namespace stratagem::test {
namespace {

using Kind = SlicedCollective::Kind;

/// Stands for a collective that sends messages, which threads of one process cannot.
class NoMessages final : public Operation {
 public:
  std::string_view name() const override { return "no_messages"; }
  State advance() override {
    ADD_FAILURE() << "all tensors are in the arena";
    return State::finished;
  }
  bool collective() const override { return true; }
};

/// A rank's calls, moved in a random order, two at a time.
class Calls {
 public:
  Calls(NodeGroup const& group, std::uint64_t seed) : group_(group), random_(seed, "order") {}

  at::Tensor given(at::Tensor const& values) const {
    return group_.allocate(values.numel(), values.scalar_type())->copy_(values);
  }
  void add(Kind kind, at::Tensor const& input, at::Tensor const& output) {
    add(kind, input, output, calls_.size() + 1);
  }
  /// With its number in the group.
  void add(Kind kind, at::Tensor const& input, at::Tensor const& output, std::uint64_t number) {
    calls_.push_back(std::make_unique<NodeCollective>(group_, kind, input, output, number,
                                                      std::make_unique<NoMessages>()));
  }
  void run() {
    std::size_t next = 0;
    std::vector<NodeCollective*> active;
    while (next < calls_.size() || !active.empty()) {
      if (active.size() < 2 && next < calls_.size()) active.push_back(calls_[next++].get());
      auto const word = random_.word(moves_++);
      auto const chosen = active.begin() + word % static_cast<std::uint32_t>(active.size());
      if ((*chosen)->advance() == Operation::State::finished) active.erase(chosen);
      if (word >> 28 == 0) std::this_thread::yield();
    }
  }

 private:
  NodeGroup const& group_;
  CounterRandom random_;
  std::uint64_t moves_ = 0;
  std::vector<std::unique_ptr<NodeCollective>> calls_;
};

/// Everything a rank computes in one round, and what it must be.
struct Results {
  at::Tensor sum, part, all, expected_sum, expected_part, expected_all;
  bool right() const {
    return same_bits(sum, expected_sum) && same_bits(part, expected_part) &&
           same_bits(all, expected_all);
  }
};

std::vector<Results> calls_of(Calls& calls, NodeGroup const& group, int rounds) {
  constexpr std::int64_t sizes[] = {0, 1, 63, 1000, 40'000, 100'003};
  constexpr at::ScalarType types[] = {at::kFloat, at::kBFloat16, at::kLong, at::kDouble, at::kInt};
  int const ranks = group.size(), rank = group.rank();
  std::vector<Results> results;
  for (int round = 0; round < rounds; ++round) {
    auto const numel = sizes[round % 6];
    auto const type = types[round % 5];
    auto const sum = calls.given(values_of(rank, numel, type));
    auto const wide = calls.given(values_of(rank, ranks * numel, type));
    auto const part = calls.given(at::zeros({numel}, type));
    auto const all = calls.given(at::zeros({ranks * numel}, type));
    auto const expected = sum_of_ranks(ranks, ranks * numel, type);
    calls.add(Kind::all_reduce, sum, sum);
    calls.add(Kind::reduce_scatter, wide, part);
    all.narrow(0, rank * numel, numel).copy_(values_of(rank, numel, type));
    calls.add(Kind::all_gather, all.narrow(0, rank * numel, numel), all);
    std::vector<at::Tensor> parts;
    for (int other = 0; other < ranks; ++other) parts.push_back(values_of(other, numel, type));
    results.push_back({sum, part, all, sum_of_ranks(ranks, numel, type),
                       expected.narrow(0, rank * numel, numel), at::cat(parts)});
  }
  return results;
}

TEST(NodeCollective, InAnyOrderOfMovesTheBitsAreThoseOfTheSumInRankOrder) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    auto const made = groups(arenas(ranks));
    std::vector<std::vector<Results>> results(made.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < made.size(); ++rank)
      threads.emplace_back([&, rank] {
        Calls calls(*made[rank], 10 * rank + static_cast<std::uint64_t>(ranks));
        results[rank] = calls_of(calls, *made[rank], 24);
        calls.run();
      });
    for (auto& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < made.size(); ++rank)
      for (std::size_t round = 0; round < results[rank].size(); ++round)
        EXPECT_TRUE(results[rank][round].right()) << ranks << " ranks, " << rank << ", " << round;
  }
}

/// Who only waits has nothing in flight, so that it need not look often.
TEST(NodeCollective, WhoWaitsForOthersMovesNothing) {
  auto const made = groups(arenas(2));
  std::vector<at::Tensor> tensors;
  std::vector<std::unique_ptr<NodeCollective>> calls;
  for (auto const& group : made) {
    tensors.push_back(*group->allocate(100'000, at::kFloat));
    calls.push_back(std::make_unique<NodeCollective>(*group, Kind::all_reduce, tensors.back(),
                                                     tensors.back(), 1,
                                                     std::make_unique<NoMessages>()));
  }
  auto const until_stuck = [&](std::size_t rank) {
    auto state = Operation::State::moved;
    while (state == Operation::State::moved) state = calls[rank]->advance();
    return state;
  };
  EXPECT_EQ(until_stuck(0), Operation::State::stuck) << "rank 1 has not called it";
  EXPECT_EQ(calls[0]->in_flight(), 0);
  EXPECT_EQ(until_stuck(1), Operation::State::stuck) << "rank 0 has a share to do";
  EXPECT_EQ(calls[1]->in_flight(), 0);
  EXPECT_EQ(calls[0]->advance(), Operation::State::moved);
  EXPECT_EQ(calls[0]->in_flight(), 400'000);
  EXPECT_EQ(until_stuck(0), Operation::State::finished);
  EXPECT_EQ(until_stuck(1), Operation::State::finished);
}

/// Ranks 0 and 2 of three, beside all three, in the same memory.
TEST(NodeCollective, GroupsShareTheMemoryAndHaveMarksOfTheirOwn) {
  auto const made = arenas(3);
  auto const all = groups(made), outer = groups({made[0], made[2]});
  std::vector<at::Tensor> sums;
  for (auto const& arena : made) sums.push_back(*arena->allocate(1000, at::kFloat));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < made.size(); ++rank)
    threads.emplace_back([&, rank] {
      for (std::uint64_t number = 1; number <= 40; ++number) {
        sums[rank].fill_(static_cast<float>(rank + 1));
        Calls of_all(*all[rank], number);
        of_all.add(Kind::all_reduce, sums[rank], sums[rank], number);
        of_all.run();
        ASSERT_EQ(sums[rank].sum().item<float>(), 6000);
        if (rank == 1) continue;
        Calls of_outer(*outer[rank / 2], number);
        of_outer.add(Kind::all_reduce, sums[rank], sums[rank], number);
        of_outer.run();
        ASSERT_EQ(sums[rank].sum().item<float>(), 12000);
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace stratagem::test
