#include "gpu/stream.hpp"

#include <vector>

#include <gtest/gtest.h>

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

TEST(Stream, WithoutAGpuTheReasonIsSaid) {
  auto const found = availability();
  EXPECT_EQ(found.count == 0, !found.reason.empty()) << found.reason;
  EXPECT_FALSE(device_name(Device{}).empty());
  EXPECT_GT(total_memory(Device{}), std::int64_t{1} << 28);
}

}  // namespace
}  // namespace stratagem::gpu
