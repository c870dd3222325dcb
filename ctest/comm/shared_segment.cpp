#include "comm/node/shared_segment.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/system.hpp"

namespace {

using stratagem::Error;
using stratagem::ExitCode;
using stratagem::SharedSegment;

std::size_t const page = SharedSegment::page();

std::string_view text_at(SharedSegment const& segment, std::size_t place) {
  return reinterpret_cast<char const*>(segment.bytes().data() + place);
}

TEST(SharedSegment, AnotherProcessReadsAndWritesIt) {
  auto segment = SharedSegment::create(3 * page);
  ASSERT_TRUE(segment.hold(page, page));
  auto* const place = segment.bytes().data() + page;
  std::memcpy(place, "asked", 6);
  auto const child = ::fork();
  if (child == 0) {
    auto const same = SharedSegment::open(segment.address());
    bool const read = text_at(same, page) == "asked" && same.bytes().size() == 3 * page;
    std::memcpy(same.bytes().data() + page, "answered", 9);
    ::_exit(read ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_at(segment, page), "answered");
}

TEST(SharedSegment, TakesMemoryOnlyForWhatIsHeld) {
  constexpr std::size_t much = std::size_t{1} << 40;
  auto segment = SharedSegment::create(much);
  EXPECT_EQ(segment.bytes().size(), much);
  EXPECT_FALSE(segment.hold(0, much)) << "more than a machine has";
  ASSERT_TRUE(segment.hold(0, 64 * page));
  auto const before = stratagem::resident_bytes();
  std::ranges::fill(segment.bytes().first(64 * page), std::byte{7});
  segment.release(0, 64 * page);
  EXPECT_LT(stratagem::resident_bytes(), before + static_cast<std::int64_t>(32 * page));
  ASSERT_TRUE(segment.hold(0, page));
  EXPECT_EQ(segment.bytes()[5], std::byte{0}) << "what was released is zero when it is held again";
}

TEST(SharedSegment, WhatIsGoneOrAnotherIsNotOpened) {
  auto segment = SharedSegment::create(page);
  auto const address = segment.address();
  auto const path = address.substr(0, address.find(' '));
  for (auto const& other : {path + " 1", std::string("/proc/self/fd/9999 1")}) try {
      static_cast<void>(SharedSegment::open(other));
      FAIL() << other;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::environment);
    }
}

TEST(SharedSegment, LeavesNothingWhenAProcessIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  auto const child = ::fork();
  if (child == 0) {
    auto segment = SharedSegment::create(page);
    auto const address = segment.address();
    static_cast<void>(segment.hold(0, page));
    static_cast<void>(::write(ends[1], address.c_str(), address.size() + 1));
    ::pause();
  }
  std::array<char, 100> address{};
  ASSERT_GT(::read(ends[0], address.data(), address.size()), 0);
  { auto const open = SharedSegment::open(address.data()); }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THROW(static_cast<void>(SharedSegment::open(address.data())), Error);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
