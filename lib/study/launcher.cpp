#include "study/launcher.hpp"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "study/held_signals.hpp"

extern char** environ;

namespace stratagem {
namespace {

constexpr char placeholder[] = "{ranks}";

bool of_a_launcher(std::string_view variable) {
  // OMPI_MCA_* and the like are a user's settings; the rest describes one job.
  if (variable.starts_with("OMPI_MCA_") || variable.starts_with("OMPI_ALLOW_")) return false;
  return variable.starts_with("OMPI_") || variable.starts_with("PMIX_") ||
         variable.starts_with("PMI_");
}

std::vector<std::string> clean_environment(int ranks) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!of_a_launcher(*entry)) variables.emplace_back(*entry);
  if (::geteuid() == 0) {
    // Open MPI asks a superuser twice; whoever started this program has decided already.
    variables.emplace_back("OMPI_ALLOW_RUN_AS_ROOT=1");
    variables.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  }
  if (ranks > static_cast<int>(usable_cores().size()))
    variables.emplace_back("OMPI_MCA_rmaps_base_oversubscribe=1");
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// The signals that a child receives, and where it prints.
class ChildSetup {
 public:
  ChildSetup(sigset_t const& blocked, std::filesystem::path const& log) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &blocked);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
    ::posix_spawn_file_actions_init(&files_);
    if (log.empty()) return;
    ::posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, log.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::posix_spawn_file_actions_adddup2(&files_, STDOUT_FILENO, STDERR_FILENO);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  ~ChildSetup() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  ChildSetup(ChildSetup const&) = delete;
  ChildSetup& operator=(ChildSetup const&) = delete;

  posix_spawn_file_actions_t const* files() const { return &files_; }
  posix_spawnattr_t const* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Launcher Launcher::parse(std::string const& text) {
  Launcher launcher{.words = {}};
  for (auto const& word : split(text, ' '))
    if (!word.empty()) launcher.words.push_back(word);
  if (std::find(launcher.words.begin(), launcher.words.end(), placeholder) == launcher.words.end())
    throw Error(ExitCode::usage,
                "launcher \"" + text + "\" does not say where the number of ranks goes", {},
                "write it like \"mpirun --bind-to none -n {ranks}\"");
  return launcher;
}

std::vector<std::string> Launcher::words_for(int ranks) const {
  auto filled = words;
  std::ranges::replace(filled, std::string(placeholder), std::to_string(ranks));
  return filled;
}

Launched launch(Launcher const& launcher, int ranks, std::filesystem::path const& program,
                std::vector<std::string> const& arguments, std::filesystem::path const& log) {
  auto words = launcher.words_for(ranks);
  words.push_back(program.string());
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto variables = clean_environment(ranks);
  auto const argv = pointers(words), envp = pointers(variables);
  HeldSignals held;
  ChildSetup const setup(held.for_child(), log);
  pid_t child = 0;
  if (int const failed = ::posix_spawnp(&child, argv[0], setup.files(), setup.attributes(),
                                        argv.data(), envp.data());
      failed != 0)
    throw Error(ExitCode::environment, "cannot start " + words.front(), std::strerror(failed),
                "install Open MPI (package openmpi-bin) or load its module");
  Launched ended;
  int const status = held.wait_for(child, ended.signal);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

std::filesystem::path own_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

}  // namespace stratagem
