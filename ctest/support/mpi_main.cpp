#include <algorithm>
#include <cstdio>
#include <optional>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "mpi/session.hpp"
#include "support/world.hpp"

namespace {

std::optional<stratagem::mpi::Comm>& world_slot() {
  static std::optional<stratagem::mpi::Comm> slot;
  return slot;
}

}  // namespace

stratagem::mpi::Comm const& stratagem::test::world() {
  return world_slot().value();
}

/// Fails on every rank when a test failed on any.
int main(int argc, char** argv) {
  stratagem::gpu::install_host_allocator();
  at::set_num_threads(1);
  testing::InitGoogleTest(&argc, argv);
  stratagem::mpi::Session session(stratagem::mpi::ThreadLevel::serialized);
  world_slot() = session.world();
  auto const& world = stratagem::test::world();
  if (world.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    // Other ranks show only what fails.
    class FailuresOnly : public testing::EmptyTestEventListener {
      void OnTestPartResult(testing::TestPartResult const& result) override {
        if (result.failed())
          std::fprintf(stderr, "rank %d: %s:%d: %s\n", stratagem::test::world().rank(),
                       result.file_name(), result.line_number(), result.summary());
      }
    };
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly);
  }
  bool failed = RUN_ALL_TESTS() != 0;
  failed = failed || testing::UnitTest::GetInstance()->test_to_run_count() == 0;
  auto const verdicts = world.all_gather(failed ? "failed" : "passed");
  failed = std::count(verdicts.begin(), verdicts.end(), "failed") > 0;
  if (world.rank() == 0)
    for (std::size_t rank = 0; rank < verdicts.size(); ++rank)
      if (verdicts[rank] == "failed") std::printf("failed on rank %zu\n", rank);
  world_slot().reset();
  if (failed) return 1;
  // CTest shows 77 as skipped: nothing failed, but the machine lacks what some test needs.
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? 77 : 0;
}
