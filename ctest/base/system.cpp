#include "base/system.hpp"

#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.hpp"

namespace stratagem {
namespace {

TEST(System, UsableCoresFollowTheAffinityMask) {
  auto const cores = usable_cores();
  ASSERT_FALSE(cores.empty());
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores.back(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cores(), std::vector<int>{cores.back()});
  }).join();
  EXPECT_EQ(usable_cores(), cores);
}

TEST(System, ProcessorTimeCountsWorkOfThreads) {
  auto const before = process_cpu_seconds();
  std::thread([] {
    for (auto const end = monotonic_ns() + 50'000'000; monotonic_ns() < end;) {
    }
  }).join();
  EXPECT_GT(process_cpu_seconds(), before);
}

TEST(System, ResidentBytesSeeTouchedMemory) {
  auto const before = resident_bytes();
  ASSERT_GT(before, 0);
  std::vector<char> const touched(64 << 20, 'x');
  EXPECT_GE(resident_bytes() - before, (48 << 20)) << touched.back();
}

TEST(System, AvailableBytesStayWithinALimit) {
  constexpr rlim_t room = 64 << 20;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  ASSERT_GT(available_bytes(), static_cast<std::int64_t>(room));
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  rlimit const limit{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + room, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  auto const available = available_bytes();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_GT(available, 0);
  EXPECT_LE(available, static_cast<std::int64_t>(room));
}

TEST(System, AProcessLivesStopsAndIsGone) {
  auto const child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_EQ(process_state(child), ProcessState::lives);
  ::kill(child, SIGSTOP);
  ::waitpid(child, nullptr, WUNTRACED);
  EXPECT_EQ(process_state(child), ProcessState::stopped);
  EXPECT_TRUE(process_lives(child));
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_EQ(process_state(child), ProcessState::gone);  // though nobody has waited for it
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(process_state(child), ProcessState::gone);
}

TEST(System, APipeShowsToNobody) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(shows_to_person(ends[1]));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(System, TimeIsWrittenInUtc) {
  EXPECT_EQ(utc_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_time(1'769'903'999'999'999'999), "2026-01-31T23:59:59Z");
}

}  // namespace
}  // namespace stratagem
