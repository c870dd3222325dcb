#include "study/launcher.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "study/held_signals.hpp"
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
  EXPECT_EQ(launch(Launcher{{"nice", "-n", "{ranks}"}}, 1, program, {}).code, 0);
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
  EXPECT_EQ(launch(launcher, 3, "/bin/program", {"run", "a file.yaml", "$HOME"}).code, 0);
  EXPECT_EQ(read_text(out, ExitCode::io), "-n|3|/bin/program|run|a file.yaml|$HOME|");
}

TEST(Launcher, ReturnsTheExitCode) {
  test::Scratch const folder;
  auto const launcher = Launcher{{"nice", "-n", "{ranks}"}};
  for (int const code : {0, 2, 84}) {
    auto const program = script(folder / "exits", "exit " + std::to_string(code));
    EXPECT_EQ(launch(launcher, 1, program, {}).code, code);
  }
  EXPECT_EQ(launch(launcher, 1, script(folder / "dies", "kill -9 $$"), {}).code, 128 + 9);
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

TEST(Launcher, CanKeepTheOutputInAFile) {
  test::Scratch const folder;
  auto const log = folder / "log";
  Launcher const launcher{{"nice", "-n", "{ranks}"}};
  for (auto const* word : {"one", "two"})
    launch(launcher, 1, script(folder / "says", str("echo ", word, "; echo error >&2")), {}, log);
  EXPECT_EQ(read_text(log, ExitCode::io), "one\nerror\ntwo\nerror\n");
}

/// As a batch script does it to the program: USR1 is for the ranks, and ends neither.
TEST(Launcher, PassesSignalsOn) {
  test::Scratch const folder;
  auto const ready = (folder / "ready").string();
  auto const program = script(
      folder / "program", "trap 'exit 75' USR1; touch " + ready + "; while :; do sleep .05; done");
  auto const signaller =
      script(folder / "signaller",
             str("while ! [ -e ", ready, " ]; do sleep .05; done; kill -USR1 ", ::getpid()));
  HeldSignals const held_by_others;  // a sweep holds them from one cell to the next
  std::thread other([&] { static_cast<void>(std::system(signaller.c_str())); });
  auto const ended = launch(Launcher{{"nice", "-n", "{ranks}"}}, 1, program, {});
  other.join();
  EXPECT_EQ(ended.code, 75);
  EXPECT_EQ(ended.signal, SIGUSR1);
}

TEST(Launcher, KnowsItsOwnProgram) {
  EXPECT_EQ(own_program().filename(), "test_study");
}

}  // namespace
}  // namespace stratagem
