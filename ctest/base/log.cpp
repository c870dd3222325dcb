#include "base/console/log.hpp"

#include <gtest/gtest.h>

#include "support/scratch.hpp"

namespace stratagem {
namespace {

TEST(Log, FileKeepsEveryLevelTheTerminalOnlyItsOwn) {
  test::Scratch const scratch;
  Log log(0, true, LogLevel::warning);
  log.keep_in(scratch / "log.txt");
  testing::internal::CaptureStderr();
  log.detail("a detail");
  log.info("news");
  log.warning("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "stratagem: warning: careful\n");
  auto const kept = read_text(scratch / "log.txt", ExitCode::io);
  for (auto const* line : {"Z a detail\n", "Z news\n", "Z warning: careful\n"})
    EXPECT_NE(kept.find(line), std::string::npos) << kept;
}

TEST(Log, OtherRanksShowErrorsOnly) {
  Log log(3, false, LogLevel::detail);
  testing::internal::CaptureStderr();
  log.warning("quiet");
  log.error("lost");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "stratagem: error: rank 3: lost\n");
}

TEST(Log, FullDiskIsSaidOnceAndNotFatal) {
  Log log(1, false, LogLevel::info);
  log.keep_in("/dev/full");
  testing::internal::CaptureStderr();
  log.info("one");
  log.info("two");
  auto const shown = testing::internal::GetCapturedStderr();
  auto const first = shown.find("no further log");
  ASSERT_NE(first, std::string::npos) << shown;
  EXPECT_EQ(shown.find("no further log", first + 1), std::string::npos) << shown;
}

}  // namespace
}  // namespace stratagem
