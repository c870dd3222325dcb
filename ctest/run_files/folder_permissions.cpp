#include "run_files/folder_permissions.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "run_files/run_directory.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

/// A folder for all to write, whatever the mask of this process says.
fs::path make(fs::path const& path, fs::perms mode) {
  fs::create_directories(path);
  fs::permissions(path, mode);
  return path;
}

std::string refusal(fs::path const& folder) {
  try {
    require_own_folder(folder);
    return "";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    return error.what();
  }
}

constexpr auto everybody = fs::perms::all;
constexpr auto everybody_own_files = fs::perms::all | fs::perms::sticky_bit;

TEST(FolderPermissions, WhatIsOnesOwnIsSafe) {
  test::Scratch const scratch;
  EXPECT_EQ(refusal(scratch / "new"), "");
  EXPECT_EQ(refusal(scratch / "new" / "newer" / ""), "");
  EXPECT_EQ(refusal(make(scratch / "own", fs::perms::owner_all | fs::perms::group_all)), "");
  EXPECT_EQ(refusal(make(scratch / "tmp", everybody_own_files) / "run"), "");
  EXPECT_EQ(refusal("run"), "");
}

TEST(FolderPermissions, WhatOthersCouldReplaceIsRefused) {
  test::Scratch const scratch;
  fs::create_directory(scratch / "real");
  fs::create_directory_symlink(scratch / "real", scratch / "link");
  fs::create_symlink("nowhere", scratch / "dangling");
  make(scratch / "open", everybody);
  for (auto const& [folder, word] : {std::pair{"link", "it is a link"},
                                     {"link/", "it is a link"},
                                     {"dangling", "it is a link"},
                                     {"open", "everybody may write into it"},
                                     {"open/run", "everybody may replace it"},
                                     {"open/a/b/run", "everybody may replace it"}})
    EXPECT_NE(refusal(scratch / folder).find(word), std::string::npos) << folder;
  // Links above it are for whoever made them to answer for.
  EXPECT_EQ(refusal(scratch / "link" / "run"), "");
}

TEST(FolderPermissions, WhatBelongsToAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a superuser, to give a folder away";
  test::Scratch const scratch;
  fs::create_directory(scratch / "theirs");
  ASSERT_EQ(::chown((scratch / "theirs").c_str(), 4711, 4711), 0);
  EXPECT_NE(refusal(scratch / "theirs").find("it belongs to user 4711"), std::string::npos);
}

TEST(FolderPermissions, ARunDirectoryIsForItsOwnerAlone) {
  test::Scratch const scratch;
  auto const mask = ::umask(0);
  claim_run_directory(scratch / "new" / "run", Existing::refuse);
  ::umask(mask);
  EXPECT_EQ(fs::status(scratch / "new" / "run").permissions(), fs::perms::owner_all);
}

TEST(FolderPermissions, NothingIsWrittenIntoAFolderThatIsRefused) {
  test::Scratch const scratch;
  fs::create_directory(scratch / "real");
  fs::create_directory_symlink(scratch / "real", scratch / "link");
  for (auto const existing : {Existing::refuse, Existing::resume, Existing::overwrite})
    EXPECT_THROW(claim_run_directory(scratch / "link", existing), Error);
  EXPECT_TRUE(fs::is_empty(scratch / "real"));
  EXPECT_TRUE(fs::is_symlink(scratch / "link"));
}

}  // namespace
}  // namespace stratagem
