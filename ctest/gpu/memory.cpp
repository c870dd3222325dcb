#include "gpu/memory.hpp"

#include <optional>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "gpu/counted_bytes.hpp"

namespace stratagem::gpu {
namespace {

constexpr Device cpu{};

/// Growth since construction.
class Growth {
 public:
  std::int64_t of(MemoryCategory category) const {
    return live_memory(cpu)[category] - before_[category];
  }
  std::int64_t total() const { return live_memory(cpu).total() - before_.total(); }

 private:
  MemoryUse before_ = live_memory(cpu);
};

TEST(Memory, EveryByteIsBookedUnderItsScope) {
  Growth const growth;
  MemoryScope const outer(MemoryCategory::parameters);
  auto const parameters = at::empty({1000});
  {
    MemoryScope const inner(MemoryCategory::gradients);
    auto const gradients = at::empty({10});
    EXPECT_EQ(growth.of(MemoryCategory::gradients), 40);
  }
  auto const more = at::empty({1});
  EXPECT_EQ(growth.of(MemoryCategory::parameters), 4004);
  EXPECT_EQ(growth.of(MemoryCategory::gradients), 0);
  EXPECT_EQ(growth.total(), 4004);
}

TEST(Memory, ABlockIsFreedFromTheCategoryItCameFrom) {
  Growth const growth;
  at::Tensor activations;
  {
    MemoryScope const scope(MemoryCategory::activations);
    activations = at::empty({256});
  }
  EXPECT_EQ(growth.of(MemoryCategory::activations), 1024);
  std::thread([&] {
    MemoryScope const scope(MemoryCategory::optimizer);
    activations.reset();
  }).join();
  EXPECT_EQ(growth.of(MemoryCategory::activations), 0);
  EXPECT_EQ(growth.of(MemoryCategory::optimizer), 0);
}

TEST(Memory, BytesFromElsewhereCountWhileTheyAreHeld) {
  Growth const growth;
  std::optional<CountedBytes> held;
  {
    MemoryScope const scope(MemoryCategory::gradients);
    held.emplace(4096);
  }
  EXPECT_EQ(growth.of(MemoryCategory::gradients), 4096);
  EXPECT_GE(peak_memory(cpu).total(), live_memory(cpu).total());
  MemoryScope const scope(MemoryCategory::optimizer);
  held.reset();
  EXPECT_EQ(growth.total(), 0);
}

TEST(Memory, ScopesBelongToTheirThread) {
  Growth const growth;
  MemoryScope const scope(MemoryCategory::parameters);
  at::Tensor other;
  std::thread([&] { other = at::empty({8}); }).join();
  EXPECT_EQ(growth.of(MemoryCategory::parameters), 0);
  EXPECT_EQ(growth.of(MemoryCategory::workspace), 32);
}

TEST(Memory, PeakKeepsTheCategoriesOfItsMoment) {
  reset_peak_memory(cpu);
  auto const before = live_memory(cpu);
  {
    MemoryScope const scope(MemoryCategory::activations);
    auto const large = at::empty({1000});
    MemoryScope const inner(MemoryCategory::workspace);
    auto const small = at::empty({10});
  }
  MemoryScope const scope(MemoryCategory::parameters);
  auto const later = at::empty({100});
  auto const peak = peak_memory(cpu);
  EXPECT_EQ(peak[MemoryCategory::activations] - before[MemoryCategory::activations], 4000);
  EXPECT_EQ(peak[MemoryCategory::workspace] - before[MemoryCategory::workspace], 40);
  EXPECT_EQ(peak[MemoryCategory::parameters], before[MemoryCategory::parameters]);
  reset_peak_memory(cpu);
  EXPECT_EQ(peak_memory(cpu).total(), live_memory(cpu).total());
}

TEST(Memory, CountsStayExactUnderThreads) {
  Growth const growth;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      MemoryScope const scope(static_cast<MemoryCategory>(t));
      for (int i = 0; i < 2000; ++i) at::empty({i});
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(growth.total(), 0);
  EXPECT_GE(peak_memory(cpu).total(), live_memory(cpu).total());
}

TEST(Memory, TensorsKeepTheAlignmentOfTheKernels) {
  for (int elements : {1, 3, 17, 1001}) {
    auto const tensor = at::empty({elements});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0U);
  }
  EXPECT_EQ(at::empty({0}).numel(), 0);
}

TEST(Memory, AnErrorTellsWhatFindsNoRoom) {
  MemoryScope const scope(MemoryCategory::gradients);
  auto const gradients = at::empty({3 << 18});
  auto const before = live_memory(cpu).total();
  try {
    static_cast<void>(at::empty({std::int64_t{1} << 50}));
    ADD_FAILURE() << "4 PiB were allocated";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::out_of_memory);
    std::string const text = error.what();
    for (auto const* words : {"a tensor of 4096 TiB", " are left", "gradients 3.00 MiB"})
      EXPECT_NE(text.find(words), std::string::npos) << text;
  }
  EXPECT_EQ(live_memory(cpu).total(), before);
}

TEST(Memory, HeapIsAtLeastWhatIsLive) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "needs the heap of glibc, which AddressSanitizer replaces";
#endif
  auto const tensor = at::empty({1 << 20});
  EXPECT_GE(reserved_memory(cpu), static_cast<double>(live_memory(cpu).total()));
}

}  // namespace
}  // namespace stratagem::gpu
