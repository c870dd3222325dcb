#include "study/launcher.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/system.hpp"
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

/// A variable that is not set while this lives, and as before afterwards.
class Unset {
 public:
  explicit Unset(std::string name) : name_(std::move(name)) {
    if (char const* value = std::getenv(name_.c_str())) value_ = value;
    ::unsetenv(name_.c_str());
  }
  ~Unset() {
    if (value_) ::setenv(name_.c_str(), value_->c_str(), 1);
  }
  Unset(Unset const&) = delete;
  Unset& operator=(Unset const&) = delete;

 private:
  std::string name_;
  std::optional<std::string> value_;
};

/// Launches a script that writes `what` to a file; the file's content.
std::string output_of(std::string const& what, int ranks = 1) {
  test::Scratch const folder;
  auto const program = script(folder / "program", what + " > " + (folder / "out").string());
  EXPECT_EQ(launch(Launcher{{"nice", "-n", "{ranks}"}}, ranks, program, {}).code, 0);
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

/// What mpirun of Open MPI 4 and of 5 gives each process, and what users set.
TEST(Launcher, KeepsAnotherLaunchersVariablesFromTheProgram) {
  std::vector<std::string> const of_a_job{"OMPI_COMM_WORLD_SIZE",
                                          "OMPI_COMM_WORLD_RANK",
                                          "OMPI_MCA_orte_hnp_uri",
                                          "OMPI_MCA_ess",
                                          "OMPI_MCA_ess_base_jobid",
                                          "OMPI_MCA_num_procs",
                                          "OMPI_MCA_mca_base_component_path",
                                          "PMIX_RANK",
                                          "PMIX_SERVER_URI41",
                                          "PMI_RANK",
                                          "PRTE_LAUNCHED",
                                          "OMPI_MCA_initial_wdir",
                                          "OMPI_MCA_mpi_oversubscribe"};
  std::vector<std::string> const settings{"OMPI_MCA_btl", "PMIX_MCA_gds", "PRTE_MCA_plm",
                                          "OMPI_ALLOW_RUN_AS_ROOT"};
  for (auto const* names : {&of_a_job, &settings})
    for (auto const& name : *names) ::setenv(name.c_str(), "planted", 1);
  auto const environment = "\n" + output_of("env");
  for (auto const* names : {&of_a_job, &settings})
    for (auto const& name : *names) ::unsetenv(name.c_str());
  auto const found = [&](std::string const& name) {
    return environment.find("\n" + name + "=planted\n") != environment.npos;
  };
  for (auto const& name : of_a_job) EXPECT_FALSE(found(name)) << name;
  for (auto const& name : settings) EXPECT_TRUE(found(name)) << name << " is a user's setting";
  EXPECT_NE(environment.find("\nPATH="), environment.npos);
}

/// Both generations of Open MPI have a variable of their own for it.
TEST(Launcher, MayStartMoreRanksThanThereAreCores) {
  constexpr auto* old = "OMPI_MCA_rmaps_base_oversubscribe";
  constexpr auto* policy = "PRTE_MCA_rmaps_default_mapping_policy";
  Unset const without_old(old), without_policy(policy);
  auto const many = static_cast<int>(usable_cores().size()) + 1;
  auto environment = "\n" + output_of("env", many);
  EXPECT_NE(environment.find(str("\n", old, "=1\n")), environment.npos);
  EXPECT_NE(environment.find(str("\n", policy, "=:oversubscribe\n")), environment.npos);
  environment = output_of("env", 1);
  EXPECT_EQ(environment.find("oversubscribe"), environment.npos) << environment;
  ::setenv(policy, "core", 1);
  environment = output_of("env", many);
  ::unsetenv(policy);
  EXPECT_NE(environment.find(str(policy, "=core\n")), environment.npos) << "a user's setting";
  EXPECT_EQ(environment.find(":oversubscribe"), environment.npos);
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

/// A Ctrl-C reaches the launcher by itself; a second one would make it give up.
TEST(Launcher, AnInterruptOfTheTerminalIsNotDoubled) {
  test::Scratch const folder;
  auto const program =
      script(folder / "program",
             str("n=0; trap 'n=$((n+1)); : > ", (folder / "seen").string(), "' INT; : > ",
                 (folder / "ready").string(), "; while ! [ -e ", (folder / "seen").string(),
                 " ]; do sleep .05; done; sleep .7; exit $((70 + n))"));
  int terminal = -1;
  auto const child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto const ended = launch(Launcher{{"nice", "-n", "{ranks}"}}, 1, program, {});
    ::_exit(ended.signal == SIGINT ? ended.code : 1);
  }
  while (!std::filesystem::exists(folder / "ready"))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  ASSERT_TRUE(WIFEXITED(status)) << "Ctrl-C is no death of who waits";
  EXPECT_EQ(WEXITSTATUS(status), 71) << "one interrupt";
}

TEST(Launcher, KnowsItsOwnProgram) {
  EXPECT_EQ(own_program().filename(), "test_study");
}

}  // namespace
}  // namespace stratagem
