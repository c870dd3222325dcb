#include "base/files/directory_lock.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.hpp"
#include "support/child.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

/// Who has it; empty where nobody had, and for a moment this process has.
std::string holder_of(fs::path const& file) {
  try {
    DirectoryLock const lock(file);
    return {};
  } catch (LockedError const& locked) {
    EXPECT_EQ(locked.code(), ExitCode::usage);
    return locked.holder();
  }
}

TEST(DirectoryLock, TellsItsHolderAndEndsWithIt) {
  test::Scratch const folder;
  auto const file = folder / "lock";
  test::Gate locked, ask;
  test::Child holder([&] {
    DirectoryLock const lock(file);
    locked.open();
    ask.pass();
    return 0;
  });
  locked.pass();
  auto const told = holder_of(file);
  EXPECT_NE(told.find("process "), std::string::npos) << told;
  EXPECT_NE(told.find("user "), std::string::npos) << told;
  holder.kill();
  EXPECT_EQ(holder.wait(), -SIGKILL);
  EXPECT_TRUE(fs::exists(file)) << "its process could not remove it";
  EXPECT_TRUE(DirectoryLock(file).is_held()) << "the system gave it back";
  EXPECT_FALSE(fs::exists(file));
}

TEST(DirectoryLock, GoesAlongWithItsFolder) {
  test::Scratch const scratch;
  auto const before = scratch / "run", aside = scratch / "aside";
  fs::create_directory(before);
  {
    DirectoryLock const lock(before / "lock");
    EXPECT_TRUE(lock.is_in(before));
    fs::rename(before, aside);
    EXPECT_FALSE(lock.is_in(before));
    EXPECT_NE(holder_of(aside / "lock"), "");
    fs::create_directory(before);
    EXPECT_FALSE(lock.is_in(before));
    EXPECT_TRUE(DirectoryLock(before / "lock").is_held()) << "it is another folder";
  }
  EXPECT_TRUE(fs::is_empty(aside));
}

TEST(DirectoryLock, IsNotTakenThroughALink) {
  test::Scratch const folder;
  std::ofstream(folder / "victim") << "kept";
  fs::create_symlink(folder / "victim", folder / "lock");
  EXPECT_THROW(DirectoryLock(folder / "lock"), Error);
  EXPECT_EQ(fs::file_size(folder / "victim"), 4U);
}

/// Each of the processes takes it again and again; while one has it, no other may.
TEST(DirectoryLock, IsHeldByOneAtATime) {
  test::Scratch const folder;
  constexpr int processes = 4, turns = 100, both = 3;
  auto const take_turns = [&](int number) {
    for (int taken = 0; taken < turns;) {
      try {
        DirectoryLock const lock(folder / "lock");
        fs::path const mark = folder / str("mark-", number);
        std::ofstream(mark) << number;
        for (auto const& entry : fs::directory_iterator(folder.path())) {
          auto const name = entry.path().filename().string();
          if (name.starts_with("mark-") && name != mark.filename()) return both;
        }
        fs::remove(mark);
        ++taken;
      } catch (LockedError const&) {
        ::usleep(50);
      }
    }
    return 0;
  };
  std::vector<std::unique_ptr<test::Child>> children;
  for (int number = 0; number < processes; ++number)
    children.push_back(std::make_unique<test::Child>([&, number] { return take_turns(number); }));
  for (auto const& child : children) EXPECT_EQ(child->wait(), 0);
}

}  // namespace
}  // namespace stratagem
