#include "study/launcher.hpp"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

/// A shell script that stands for mpirun, the program, or both.
fs::path script(fs::path const& path, std::string const& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

/// Launches a script that writes `what` to a file; the file's content.
std::string output_of(std::string const& what) {
  test::Scratch const folder;
  auto const program = script(folder / "program", what + " > " + (folder / "out").string());
  EXPECT_EQ(launch(Launcher{{"nice", "-n", "{ranks}"}}, 1, program, {}), 0);
  return read_text(folder / "out", ExitCode::io);
}

TEST(Launcher, IsWordsWithAPlaceForTheRanks) {
  auto const launcher = Launcher::parse("srun  --mpi=pmix -n {ranks} ");
  EXPECT_EQ(launcher.words, (std::vector<std::string>{"srun", "--mpi=pmix", "-n", "{ranks}"}));
  for (auto const* text : {"", "mpirun -n 2", "mpirun -n ranks"}) {
    try {
      Launcher::parse(text);
      ADD_FAILURE() << text;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("{ranks}"), std::string::npos);
    }
  }
}

TEST(Launcher, HandsOverTheProgramAndItsArguments) {
  test::Scratch const folder;
  auto const out = folder / "words";
  auto const mpirun = script(folder / "mpirun", "printf '%s|' \"$@\" > " + out.string());
  Launcher const launcher{{mpirun.string(), "-n", "{ranks}"}};
  EXPECT_EQ(launch(launcher, 3, "/bin/program", {"run", "a file.yaml", "$HOME"}), 0);
  EXPECT_EQ(read_text(out, ExitCode::io), "-n|3|/bin/program|run|a file.yaml|$HOME|");
}

TEST(Launcher, ReturnsTheExitCode) {
  test::Scratch const folder;
  auto const launcher = Launcher{{"nice", "-n", "{ranks}"}};
  for (int const code : {0, 2, 84}) {
    auto const program = script(folder / "exits", "exit " + std::to_string(code));
    EXPECT_EQ(launch(launcher, 1, program, {}), code);
  }
  EXPECT_EQ(launch(launcher, 1, script(folder / "dies", "kill -9 $$"), {}), 128 + 9);
}

TEST(Launcher, SaysWhereItIsNotInstalled) {
  try {
    launch(Launcher::parse("no-such-launcher {ranks}"), 2, "/bin/true", {});
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    EXPECT_NE(std::string(error.what()).find("no-such-launcher"), std::string::npos);
  }
}

TEST(Launcher, KeepsAnotherLaunchersVariablesFromTheProgram) {
  ::setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  ::setenv("PMIX_RANK", "3", 1);
  ::setenv("OMPI_MCA_btl", "self,vader", 1);
  auto const environment = output_of("env");
  for (auto const* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "OMPI_MCA_btl"}) ::unsetenv(name);
  EXPECT_EQ(environment.find("OMPI_COMM_WORLD_RANK="), environment.npos);
  EXPECT_EQ(environment.find("PMIX_RANK="), environment.npos);
  EXPECT_NE(environment.find("OMPI_MCA_btl=self,vader"), environment.npos) << "a user's setting";
  EXPECT_NE(environment.find("PATH="), environment.npos);
}

TEST(Launcher, KnowsItsOwnProgram) {
  EXPECT_EQ(own_program().filename(), "test_study");
}

}  // namespace
}  // namespace stratagem
