#include "gpu/stream.hpp"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/pinned_pool.hpp"

namespace stratagem::gpu {
namespace {

TEST(Stream, CopiesAreDoneAfterTheEvent) {
  Device const cpu{};
  auto const stream = Stream::high_priority(cpu);
  PinnedBuffer const buffer(cpu, 1000);
  std::vector<std::byte> source(buffer.size(), std::byte{7});
  copy_async(buffer.data(), source.data(), source.size(), stream);
  Event event(cpu);
  event.record(stream);
  event.wait_on_stream(Stream::compute(cpu));
  event.wait_on_host();
  EXPECT_TRUE(event.done());
  EXPECT_EQ(std::vector<std::byte>(buffer.data(), buffer.data() + buffer.size()), source);
}

TEST(Stream, PinnedBuffersAreUsedAgain) {
  auto pool = std::make_unique<PinnedPool>(Device{});
  auto first = pool->take(100);
  auto const second = pool->take(100);
  EXPECT_NE(first->data(), second->data());
  auto* const place = first->data();
  first.reset();
  EXPECT_NE(pool->take(99)->data(), place) << "of another size";
  EXPECT_EQ(pool->take(100)->data(), place);
  pool.reset();
  EXPECT_EQ(second->size(), 100U) << "what is out stays";
}

TEST(Stream, WithoutAGpuTheReasonIsSaid) {
  auto const found = availability();
  EXPECT_EQ(found.count == 0, !found.reason.empty()) << found.reason;
  EXPECT_FALSE(device_name(Device{}).empty());
  EXPECT_GT(total_memory(Device{}), std::int64_t{1} << 28);
}

}  // namespace
}  // namespace stratagem::gpu
