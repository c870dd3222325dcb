#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/mpi/mpi_world.hpp"
#include "support/world.hpp"

// Counts of MPI calls are 32-bit: what is longer travels in parts.
namespace stratagem {
namespace {

constexpr std::int64_t more_than_2_gib = (std::int64_t{1} << 31) + (1 << 27) + 3;

constexpr std::int64_t piece = 1 << 24;

/// `count` <= piece bytes of a pattern that differs between places 2^30, 2^31 and 2^32 apart.
at::Tensor pattern(std::int64_t begin, std::int64_t count) {
  constexpr std::int64_t period = 251;
  static auto const repeated =
      at::arange(piece + period, at::kInt).remainder_(period).to(at::kByte);
  return repeated.narrow(0, begin % period, count);
}

bool holds_pattern(at::Tensor const& tensor) {
  for (std::int64_t begin = 0; begin < tensor.numel(); begin += piece) {
    auto const count = std::min(piece, tensor.numel() - begin);
    if (!tensor.narrow(0, begin, count).equal(pattern(begin, count))) return false;
  }
  return true;
}

void fill_pattern(at::Tensor const& tensor, std::int64_t offset) {
  for (std::int64_t begin = 0; begin < tensor.numel(); begin += piece) {
    auto const count = std::min(piece, tensor.numel() - begin);
    tensor.narrow(0, begin, count).copy_(pattern(offset + begin, count));
  }
}

TEST(LargeMessages, Broadcast) {
  MpiWorld of_comm(test::world(), {}, nullptr, std::chrono::seconds(60));
  auto& comm = of_comm.all();
  auto const tensor = at::zeros({more_than_2_gib}, at::kByte);
  if (comm.rank() == 0) fill_pattern(tensor, 0);
  comm.broadcast(tensor, 0).wait_on_host();
  EXPECT_TRUE(holds_pattern(tensor));
}

TEST(LargeMessages, AllGather) {
  MpiWorld of_comm(test::world(), {}, nullptr, std::chrono::seconds(60));
  auto& comm = of_comm.all();
  auto const part = more_than_2_gib / comm.size();
  auto const whole = at::zeros({part * comm.size()}, at::kByte);
  auto const own = whole.narrow(0, part * comm.rank(), part);
  fill_pattern(own, part * comm.rank());
  comm.all_gather(whole, own).wait_on_host();
  EXPECT_TRUE(holds_pattern(whole));
}

}  // namespace
}  // namespace stratagem
