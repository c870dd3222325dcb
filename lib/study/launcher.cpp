#include "study/launcher.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

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

/// Variables with these prefixes are settings. A launcher's other variables describe one job.
constexpr std::array settings{"OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "OMPI_ALLOW_", "PRTE_ALLOW_"};
/// Inside a job, these only look like settings: mpirun sets them for each process.
constexpr std::array of_one_job{
    "OMPI_MCA_PREFIXES",     "OMPI_MCA_cpu_type",          "OMPI_MCA_ess",
    "OMPI_MCA_initial_wdir", "OMPI_MCA_num_procs",         "OMPI_MCA_mca_base_component_path",
    "OMPI_MCA_orte_",        "OMPI_MCA_mpi_oversubscribe", "OMPI_MCA_shmem_RUNTIME_QUERY_hint"};

bool of_a_launcher(std::string_view variable) {
  auto const begins = [&](std::string_view beginning) { return variable.starts_with(beginning); };
  bool const inside_of_job = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  if (inside_of_job && std::ranges::any_of(of_one_job, begins)) return true;
  if (std::ranges::any_of(settings, begins)) return false;
  return begins("OMPI_") || begins("PMIX_") || begins("PMI_") || begins("PRTE_");
}

/// Launchers have slots for one rank per core, not per hardware thread.
std::size_t cores_of_own() {
  std::set<std::string> cores;
  for (int const thread : usable_cores()) {
    std::ifstream file(
        str("/sys/devices/system/cpu/cpu", thread, "/topology/thread_siblings_list"));
    std::string siblings;
    cores.insert(std::getline(file, siblings) ? siblings : std::to_string(thread));
  }
  return cores.size();
}

std::vector<std::string> clean_environment(int ranks) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!of_a_launcher(*entry)) variables.emplace_back(*entry);
  auto const unless_set = [&](std::string const& name, char const* value) {
    if (std::getenv(name.c_str()) == nullptr) variables.push_back(name + "=" + value);
  };
  if (::geteuid() == 0)
    // Launchers require that a superuser confirms; starting this program as root was the
    // confirmation.
    for (auto const* name : {"OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"}) {
      unless_set(name, "1");
      unless_set(str(name, "_CONFIRM"), "1");
    }
  if (ranks > static_cast<int>(cores_of_own())) {
    unless_set("OMPI_MCA_rmaps_base_oversubscribe", "1");                   // up to Open MPI 4
    unless_set("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");  // from 5 on
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// The signals that a child receives, and where its output goes.
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
