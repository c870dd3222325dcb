#include "base/console/terminal.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace stratagem {
namespace {

TEST(Terminal, ColumnsAreAskedForAnew) {
  int const controller = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(controller, 0);
  ASSERT_EQ(::grantpt(controller), 0);
  ASSERT_EQ(::unlockpt(controller), 0);
  int const terminal = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  for (unsigned short const columns : {80, 33}) {
    winsize const size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(controller, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(terminal_columns(terminal), columns);
  }
  ::close(terminal);
  ::close(controller);
}

TEST(Terminal, APipeHasNoColumns) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(terminal_columns(ends[1]), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Terminal, LongLinesAreFoldedAtSpaces) {
  EXPECT_EQ(fold_lines("one two three four\nfive\n", 10), "one two\n  three\n  four\nfive\n");
  EXPECT_EQ(fold_lines("  - one two three", 11), "  - one two\n    three");
  EXPECT_EQ(fold_lines("one two three four", 0), "one two three four");
  EXPECT_EQ(fold_lines("exactly 10", 10), "exactly 10");
  EXPECT_EQ(fold_lines("it takes 12 s, or", 12), "it takes\n  12 s, or");
  EXPECT_EQ(fold_lines("64 % of it", 3), "64\n %\n of\n it") << "where there is no room";
}

TEST(Terminal, AWordThatIsTooLongStaysWhole) {
  EXPECT_EQ(fold_lines("writes /a/long/folder now", 10), "writes\n  /a/long/folder\n  now");
  EXPECT_EQ(fold_lines("/a/long/folder", 10), "/a/long/folder");
  EXPECT_EQ(fold_lines("", 10), "");
}

}  // namespace
}  // namespace stratagem
