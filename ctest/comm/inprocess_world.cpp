#include "comm/inprocess/inprocess_world.hpp"

#include <array>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/communicator_suite.hpp"

namespace stratagem::test {
namespace {

std::vector<int> half(int rank, int ranks) {
  std::vector<int> found;
  for (int other = 0; other < ranks; ++other)
    if ((other < ranks / 2) == (rank < ranks / 2)) found.push_back(other);
  return found;
}

class InprocessWorld : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(InprocessWorld, Does) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    SCOPED_TRACE(ranks);
    run_worlds(ranks, 7, [&](World& world) {
      int const rank = world.all().rank();
      GetParam().body(world.group("halves", half(rank, ranks)));
      GetParam().body(world.group("others", every_second(rank, ranks)));
      GetParam().body(world.all());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Suite, InprocessWorld, testing::ValuesIn(communicator_cases()), case_name);

/// Sums in three groups, which each rank calls in an order of its own; as many as are asked for.
void sum_in_any_order(World& world, std::uint64_t seed, int calls) {
  int const rank = world.all().rank(), ranks = world.all().size();
  std::array<Communicator*, 3> const groups{&world.all(), &world.group("halves", half(rank, ranks)),
                                            &world.group("others", every_second(rank, ranks))};
  CounterRandom const random(seed * 100 + static_cast<std::uint64_t>(rank), "order");
  std::array<int, 3> left{calls, calls, calls};
  std::vector<std::pair<Work, at::Tensor>> works;
  std::vector<int> sizes;
  for (std::uint64_t drawn = 0; left[0] + left[1] + left[2] > 0;) {
    auto const chosen = random.word(drawn++) % 3;
    if (left[chosen]-- <= 0) {
      left[chosen] = 0;
      continue;
    }
    auto& group = *groups[chosen];
    auto const tensor = at::ones({100}, at::kFloat);
    works.emplace_back(group.all_reduce(tensor), tensor);
    sizes.push_back(group.size());
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i].first.wait_on_host();
    EXPECT_EQ(works[i].second.sum().item<float>(), 100.0F * static_cast<float>(sizes[i]));
  }
}

TEST(InprocessWorld, GroupsDoNotWaitForEachOther) {
  for (std::uint64_t seed = 0; seed < 700; ++seed)
    run_worlds(4, seed, [&](World& world) { sum_in_any_order(world, seed, 5); });
}

/// Whoever waits for the dead rank, in whichever group, hears of it.
TEST(InprocessWorld, ADeathInAnyGroupEndsAllRanks) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Death const death{.rank = static_cast<int>(seed % 4),
                      .calls = static_cast<std::int64_t>(20 + seed % 17)};
    try {
      run_worlds(
          4, seed, [&](World& world) { sum_in_any_order(world, seed, 5); }, death);
      ADD_FAILURE() << "nobody noticed, seed " << seed;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::peer_lost) << error.what();
    }
  }
}

TEST(InprocessWorld, ADifferenceNamesTheGroup) {
  try {
    run_worlds(4, 1, [](World& world) {
      int const rank = world.all().rank();
      auto& group = world.group("halves", half(rank, 4));
      group.all_reduce(at::zeros({rank == 3 ? 5 : 4}, at::kFloat)).wait_on_host();
      world.all().barrier().wait_on_host();
    });
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::mismatch);
    EXPECT_NE(std::string(error.what()).find("collective 0 of halves of ranks 2, 3"),
              std::string::npos)
        << error.what();
  }
}

TEST(InprocessWorld, RanksThatDoNotAgreeOnTheirGroupsAreRefused) {
  try {
    run_worlds(3, 1, [](World& world) {
      int const rank = world.all().rank();
      world.group("pair", rank == 2 ? std::vector{2} : std::vector{0, rank == 0 ? 2 : 1});
    });
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::mismatch);
    EXPECT_NE(std::string(error.what()).find("pair 0,2 on rank 0, pair 2 on rank 2"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stratagem::test
