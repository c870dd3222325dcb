#include "study/study_directory.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

Study sample() {
  Study study{.name = "s", .file = "s.yaml", .text = "name: s\n", .overrides = {}, .cells = {}};
  for (int i = 0; i < 2; ++i) {
    Cell cell;
    cell.entry = {.index = i, .name = i == 0 ? "p-a" : "p-b", .precision = "fp32"};
    study.cells.push_back(cell);
  }
  return study;
}

template <class Action>
std::string refusal(Action const& action) {
  try {
    action();
    return "accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
}

bool has(std::string const& text, std::string const& word) {
  return text.find(word) != std::string::npos;
}

TEST(StudyDirectory, IsMadeOnceAndOpened) {
  test::Scratch const folder;
  auto const path = folder / "study";
  EXPECT_FALSE(StudyDirectory::is_one(path));
  static_cast<void>(StudyDirectory::prepare(path, sample()));
  auto const before = read_text(path / "study.json", ExitCode::io);
  static_cast<void>(StudyDirectory::prepare(path, sample()));
  EXPECT_EQ(read_text(path / "study.json", ExitCode::io), before) << "the second time it is opened";
  auto const opened = StudyDirectory::open(path);
  ASSERT_EQ(opened.cells().size(), 2U);
  EXPECT_EQ(opened.cells()[1].name, "p-b");
  EXPECT_EQ(opened.study_file(), "s.yaml");
  EXPECT_EQ(read_text(path / "study.yaml", ExitCode::io), "name: s\n");
}

TEST(StudyDirectory, AnotherStudyIsRefused) {
  test::Scratch const folder;
  auto const path = folder / "study";
  static_cast<void>(StudyDirectory::prepare(path, sample()));
  auto other = sample();
  other.text += "# changed\n";
  EXPECT_TRUE(has(refusal([&] { StudyDirectory::prepare(path, other); }), "another study"));
  other = sample();
  other.overrides = {"run.epochs=1"};
  EXPECT_TRUE(has(refusal([&] { StudyDirectory::prepare(path, other); }), "-s run.epochs=1"));
  other = sample();
  other.cells.pop_back();
  EXPECT_TRUE(has(refusal([&] { StudyDirectory::prepare(path, other); }), "cells.csv"));
}

TEST(StudyDirectory, AnotherFolderIsRefused) {
  test::Scratch const folder;
  EXPECT_TRUE(has(refusal([&] { StudyDirectory::open(folder.path()); }), "not a study directory"));
  std::ofstream(folder / "study.yaml") << "years of work\n";
  EXPECT_TRUE(
      has(refusal([&] { StudyDirectory::prepare(folder.path(), sample()); }), "study.yaml"));
  EXPECT_EQ(read_text(folder / "study.yaml", ExitCode::io), "years of work\n");
  for (auto const* content : {"{\"schema\": 2}", "{", "{}"}) {
    std::ofstream(folder / "study.json") << content;
    auto const text = refusal([&] { StudyDirectory::open(folder.path()); });
    EXPECT_TRUE(has(text, "schema") || has(text, "damaged")) << text;
  }
}

}  // namespace
}  // namespace stratagem
