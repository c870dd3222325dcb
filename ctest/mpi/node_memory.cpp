#include "mpi/node_memory.hpp"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "support/world.hpp"

namespace stratagem::mpi {
namespace {

TEST(NodeMemory, EveryRankSeesWhatTheOthersWrite) {
  auto const node = test::world().split_node();
  NodeMemory const memory(node, 100);
  auto const own = memory.part(node.rank());
  EXPECT_EQ(own.size(), 100U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(own.data()) % 64, 0U);
  EXPECT_EQ(std::ranges::count(own, std::byte{0}), 100);
  node.barrier();
  std::ranges::fill(own, static_cast<std::byte>(node.rank() + 1));
  node.barrier();
  for (int rank = 0; rank < node.size(); ++rank)
    EXPECT_EQ(std::ranges::count(memory.part(rank), static_cast<std::byte>(rank + 1)), 100) << rank;
  node.barrier();
}

}  // namespace
}  // namespace stratagem::mpi
