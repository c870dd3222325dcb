#include "base/files/file.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/files/free_name.hpp"
#include "base/text.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

template <class Action>
ExitCode code_of(Action action) {
  try {
    action();
  } catch (Error const& error) {
    return error.code();
  }
  return ExitCode::done;
}

auto entries(fs::path const& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(File, ReplaceTakesThePlaceOfNoDevicePipeOrFolder) {
  test::Scratch const scratch;
  fs::create_directory(scratch / "folder");
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  for (auto const* name : {"folder", "pipe"})
    EXPECT_EQ(code_of([&] { replace_file(scratch / name, "new"); }), ExitCode::io) << name;
  if (::mknod((scratch / "device").c_str(), S_IFCHR | 0600, ::makedev(1, 3)) == 0) {
    EXPECT_EQ(code_of([&] { replace_file(scratch / "device", "new"); }), ExitCode::io);
    EXPECT_TRUE(fs::is_character_file(scratch / "device"));
  }
}

TEST(File, ReplaceIsSeenWholeAndLeavesNothingBeside) {
  test::Scratch const scratch;
  std::string const binary("a\0b\n", 4);
  replace_file(scratch / "x", "old");
  replace_file(scratch / "x", binary);
  EXPECT_EQ(read_text(scratch / "x", ExitCode::io), binary);
  EXPECT_EQ(read_bytes(scratch / "x", ExitCode::io, most_text).size(), 4U);
  EXPECT_EQ(entries(scratch.path()), 1);
}

TEST(File, FailedReplaceKeepsTheOldContent) {
  test::Scratch const scratch;
  fs::create_directory(scratch / "folder");
  replace_file(scratch / "folder" / "kept", "content");
  // A folder cannot be replaced by a file.
  EXPECT_EQ(code_of([&] { replace_file(scratch / "folder", "new"); }), ExitCode::io);
  EXPECT_EQ(code_of([&] { replace_file(scratch / "missing" / "x", "new"); }), ExitCode::io);
  EXPECT_EQ(read_text(scratch / "folder" / "kept", ExitCode::io), "content");
  EXPECT_EQ(entries(scratch.path()), 1);
}

TEST(File, WhatIsTooLongIsNotRead) {
  test::Scratch const scratch;
  replace_file(scratch / "x", "12345");
  EXPECT_EQ(read_text(scratch / "x", ExitCode::usage, 5), "12345");
  EXPECT_EQ(code_of([&] { read_text(scratch / "x", ExitCode::usage, 4); }), ExitCode::usage);
  // More than any machine's memory: a file with a hole.
  fs::resize_file(scratch / "x", std::uintmax_t{1} << 42);
  try {
    read_text(scratch / "x", ExitCode::usage);
    FAIL();
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("4.00 TiB, more than 64.0 MiB"), std::string::npos)
        << error.what();
  }
}

TEST(File, APipeIsRefusedWithoutWaitingForItsWriter) {
  test::Scratch const scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { read_text(scratch / "pipe", ExitCode::usage); }), ExitCode::usage);
}

TEST(File, ReadFailsWithTheCallersCodeAndTheReason) {
  test::Scratch const scratch;
  EXPECT_EQ(code_of([&] { read_text(scratch / "none", ExitCode::bad_data); }), ExitCode::bad_data);
  EXPECT_EQ(code_of([&] { read_bytes(scratch.path(), ExitCode::usage, most_text); }),
            ExitCode::usage);
  EXPECT_EQ(code_of([&] { read_text("/dev/null", ExitCode::io); }), ExitCode::io);
  try {
    read_text(scratch / "none", ExitCode::io);
    FAIL();
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
}

TEST(File, AppendKeepsWhatIsThere) {
  test::Scratch const scratch;
  AppendFile(scratch / "log").write("one\n");
  AppendFile(scratch / "log").write("two\n");
  EXPECT_EQ(read_text(scratch / "log", ExitCode::io), "one\ntwo\n");
}

TEST(File, NothingIsWrittenThroughALink) {
  test::Scratch const scratch;
  replace_file(scratch / "theirs", "kept");
  // The name that a temporary file would have, and a name of ours.
  fs::create_symlink(scratch / "theirs", scratch / str("x.tmp.", ::getpid()));
  replace_file(scratch / "x", "ours");
  fs::create_symlink(scratch / "theirs", scratch / "log");
  EXPECT_EQ(code_of([&] { AppendFile(scratch / "log").write("ours"); }), ExitCode::io);
  replace_file(scratch / "log", "ours");
  EXPECT_FALSE(fs::is_symlink(scratch / "log"));
  EXPECT_EQ(read_text(scratch / "theirs", ExitCode::io), "kept");
}

TEST(File, AppendToAFullDeviceFails) {
  AppendFile full("/dev/full");
  EXPECT_EQ(code_of([&] { full.write("x"); }), ExitCode::io);
}

TEST(File, AFreeNameCountsOn) {
  test::Scratch const scratch;
  auto const path = scratch / "run.old-2026";
  EXPECT_EQ(free_name(path), path);
  fs::create_directory(path);
  EXPECT_EQ(free_name(path), scratch / "run.old-2026-2");
  fs::create_symlink("nowhere", scratch / "run.old-2026-2");
  EXPECT_EQ(free_name(path), scratch / "run.old-2026-3");
}

}  // namespace
}  // namespace stratagem
