#include "h5/trial.hpp"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "h5/sample.hpp"

namespace stratagem::h5 {
namespace {

class Trial : public SampleTest {
 protected:
  /// What is said of `read`; empty where nothing is.
  std::string complaint(std::function<void()> const& read) const {
    try {
      try_in_child(path_, read);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_NE(std::string(error.what()).find(path_.string()), std::string::npos);
      return error.what();
    }
    return {};
  }

  std::filesystem::path const path_ = scratch_ / "x.h5";
};

TEST_F(Trial, WhatComesToAnEndIsLeftToTheCaller) {
  write_sample(path_, FileWriter::Mode::streaming, 3);
  EXPECT_EQ(complaint([&] { FileReader(path_).read_table(sample()); }), "");
  replace_file(path_, "no HDF5");
  EXPECT_EQ(complaint([&] { FileReader(path_).read_table(sample()); }), "") << "an error is an end";
}

TEST_F(Trial, ACrashIsNamed) {
  EXPECT_NE(complaint([] { std::raise(SIGSEGV); }).find("crashes: Segmentation fault"),
            std::string::npos);
  EXPECT_NE(complaint([] { std::abort(); }).find("crashes: Aborted"), std::string::npos);
}

TEST_F(Trial, ReadingWithoutEndIsNamed) {
  EXPECT_NE(complaint([] { std::raise(SIGXCPU); }).find("comes to no end"), std::string::npos);
  EXPECT_NE(complaint([] { std::raise(SIGALRM); }).find("comes to no end"), std::string::npos);
}

TEST_F(Trial, MemoryIsBounded) {
  EXPECT_NE(complaint([] {
              std::vector<std::unique_ptr<char[]>> taken;  // never touched
              for (;;) taken.emplace_back(new char[std::size_t{1} << 30]);
            }).find("more memory"),
            std::string::npos);
}

TEST_F(Trial, NothingOfTheChildComesBack) {
  int value = 1;
  EXPECT_EQ(complaint([&] { value = 2; }), "");
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace stratagem::h5
