#include "base/failpoint.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "support/child.hpp"

namespace stratagem {
namespace {

std::string refusal(std::string const& text) {
  try {
    Failpoints const points(text, 0);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Failpoint, OneHappensAtItsSiteRankAndStepOnly) {
  Failpoints const points("forward:1:3:throw,backward:*:*:throw", 1);
  EXPECT_THROW(points.reach("forward", 3), std::runtime_error);
  EXPECT_NO_THROW(points.reach("forward", 2));
  EXPECT_NO_THROW(points.reach("optimizer", 3));
  EXPECT_THROW(points.reach("backward", 7), std::runtime_error);
  EXPECT_TRUE(Failpoints("forward:1:3:throw", 0).empty());
  EXPECT_TRUE(Failpoints("", 0).empty());
}

TEST(Failpoint, AFullDiskIsAnErrorOfWriting) {
  try {
    Failpoints("save_write:0:*:nospace", 0).reach("save_write", 5);
    FAIL() << "nothing was thrown";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
}

TEST(Failpoint, ADelayIsAsLongAsItSays) {
  auto const begin = monotonic_ns();
  Failpoints("data:0:1:delay=30", 0).reach("data", 1);
  EXPECT_GE(monotonic_ns() - begin, 30'000'000);
}

TEST(Failpoint, CorruptionFlipsOneBit) {
  std::array<std::byte, 9> data{};
  Failpoints const points("optimizer:0:2:corrupt", 0);
  points.reach("optimizer", 2);  // does nothing to the program
  EXPECT_FALSE(points.corrupt("optimizer", 1, data));
  EXPECT_EQ(data, (std::array<std::byte, 9>{}));
  EXPECT_TRUE(points.corrupt("optimizer", 2, data));
  EXPECT_EQ(data[4], std::byte{1});
  EXPECT_EQ(std::ranges::count(data, std::byte{0}), 8);
}

TEST(Failpoint, AnActionEndsTheProcess) {
  auto const end_by = [](std::string const& action) {
    return test::Child([&] {
             Failpoints("init:0:*:" + action, 0).reach("init");
             return test::Child::threw;
           })
        .wait();
  };
  EXPECT_EQ(end_by("kill"), -SIGKILL);
  EXPECT_EQ(end_by("abort"), -SIGABRT);
  EXPECT_EQ(end_by("exit"), 0);
}

TEST(Failpoint, WhatCannotBeUnderstoodIsRefusedAndSaysWhy) {
  EXPECT_NE(refusal("forward:1:throw").find("four parts"), std::string::npos);
  EXPECT_NE(refusal("foward:1:*:throw").find("did you mean \"forward\""), std::string::npos);
  EXPECT_NE(refusal("forward:1:*:kil").find("did you mean \"kill\""), std::string::npos);
  EXPECT_NE(refusal("forward:x:*:kill").find("\"x\""), std::string::npos);
  EXPECT_NE(refusal("forward:1:-2:kill").find("\"-2\""), std::string::npos);
  EXPECT_NE(refusal("forward:1:2:delay=long").find("milliseconds"), std::string::npos);
}

}  // namespace
}  // namespace stratagem
