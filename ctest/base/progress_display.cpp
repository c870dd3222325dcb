#include "base/console/progress_display.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

/// What `show` writes to stderr.
template <class Show>
std::string shown(ProgressStyle style, Show show) {
  testing::internal::CaptureStderr();
  {
    ProgressDisplay display(style, 100, 50, 2);
    show(display);
  }
  return testing::internal::GetCapturedStderr();
}

void wait_until_due() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
}

TEST(ProgressDisplay, LinesArePlainAndOneForATenthOfAnEpoch) {
  auto const text = shown(ProgressStyle::line, [](ProgressDisplay& display) {
    display.step(1, 64, 2.5);
    wait_until_due();
    display.step(59, 64, 1.5);  // no tenth
    display.step(60, 64, 1.25);
    display.step(65, 64, 1.0);  // too soon
    display.say("epoch 2/2 done");
  });
  EXPECT_EQ(text.find_first_of("\r\033"), text.npos) << text;
  EXPECT_EQ(text.find("epoch 2/2  step 60/100  loss 1.2500  "), 0U) << text;
  EXPECT_NE(text.find(" images/s  left "), text.npos) << text;
  EXPECT_EQ(text.substr(text.find('\n') + 1), "epoch 2/2 done\n");
}

TEST(ProgressDisplay, ABarIsDrawnAndTakenAway) {
  auto const text = shown(ProgressStyle::bar, [](ProgressDisplay& display) {
    wait_until_due();
    display.step(50, 64, 2.5);
  });
  EXPECT_EQ(text.find("\r\033[K[============            ] epoch 1/2  step 50/100"), 0U) << text;
  EXPECT_EQ(text.substr(text.size() - 4), "\r\033[K");
}

TEST(ProgressDisplay, NoneIsSilent) {
  auto const text = shown(ProgressStyle::none, [](ProgressDisplay& display) {
    wait_until_due();
    display.step(50, 64, 2.5);
    display.say("done");
  });
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace stratagem
