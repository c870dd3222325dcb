#include "gpu/branch.hpp"

#include <gtest/gtest.h>

namespace stratagem::gpu {
namespace {

TEST(Branch, WithoutAGraphItsWorkIsDoneAtOnce) {
  Device const cpu{};
  EXPECT_FALSE(Branch::possible(cpu));
  Branch branch;
  bool done = false;
  branch.run(cpu, {}, [&] { done = true; });
  EXPECT_TRUE(done);
  branch.join();
}

}  // namespace
}  // namespace stratagem::gpu
