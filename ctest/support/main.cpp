#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "gpu/memory.hpp"

/// A filter that selects nothing is a failure: the test it was meant for is gone.
int main(int argc, char** argv) {
  stratagem::gpu::install_host_allocator();
  at::set_num_threads(1);
  testing::InitGoogleTest(&argc, argv);
  int const failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::puts("no test matches the filter");
    return 1;
  }
  return failed;
}
