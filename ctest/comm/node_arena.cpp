#include <optional>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/arenas.hpp"
#include "comm/node/arena.hpp"
#include "gpu/memory.hpp"

namespace stratagem::test {
namespace {

TEST(NodeArena, TensorsAreZeroAndCountAsMemoryOfTheirScope) {
  auto const arena = arenas(1).front();
  auto const before = gpu::live_memory({})[gpu::MemoryCategory::gradients];
  std::optional<at::Tensor> first;
  {
    gpu::MemoryScope const scope(gpu::MemoryCategory::gradients);
    first = arena->allocate(1000, at::kDouble);
  }
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(gpu::live_memory({})[gpu::MemoryCategory::gradients] - before, 8000);
  auto const place = arena->place_of(first->data_ptr());
  ASSERT_TRUE(place.has_value());
  first->fill_(1);
  first.reset();
  EXPECT_EQ(gpu::live_memory({})[gpu::MemoryCategory::gradients], before);
  auto const second = *arena->allocate(1000, at::kDouble);
  EXPECT_EQ(arena->place_of(second.data_ptr()), place) << "the place is used again";
  EXPECT_EQ(second.sum().item<double>(), 0);
  EXPECT_FALSE(arena->place_of(at::zeros({3}).data_ptr()).has_value());
  EXPECT_EQ(arena->allocate(0, at::kFloat)->numel(), 0);
}

TEST(NodeArena, PlacesAreGivenBackInAnyOrder) {
  auto const arena = arenas(1).front();
  std::vector<at::Tensor> tensors;
  for (int i = 1; i <= 6; ++i) tensors.push_back(*arena->allocate(5000 * i, at::kFloat));
  auto const first = arena->place_of(tensors.front().data_ptr());
  for (auto const place : {4U, 0U, 2U, 5U, 1U, 3U}) tensors[place].reset();
  EXPECT_EQ(arena->place_of(arena->allocate(100'000, at::kFloat)->data_ptr()), first);
}

TEST(NodeArena, MoreThanThereIsIsRefused) {
  EXPECT_FALSE(arenas(1).front()->allocate(std::int64_t{1} << 44, at::kFloat).has_value());
}

TEST(NodeArena, TensorsOutliveIt) {
  auto tensor = *arenas(1).front()->allocate(10, at::kFloat);
  EXPECT_EQ(tensor.fill_(3).sum().item<float>(), 30);
}

}  // namespace
}  // namespace stratagem::test
