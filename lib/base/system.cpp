#include "base/system.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

struct OwnMemory {
  std::int64_t mapped = 0, resident = 0;  ///< [B]
};

OwnMemory own_memory() {
  std::ifstream statm("/proc/self/statm");
  OwnMemory pages;
  statm >> pages.mapped >> pages.resident;
  auto const size = ::sysconf(_SC_PAGESIZE);
  return {pages.mapped * size, pages.resident * size};
}

/// [B]; RLIM_INFINITY: none.
rlim_t address_space_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void allow_many_files() {
  constexpr rlim_t wanted = 65'536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, wanted));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<int> usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  return cores;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

void name_thread(std::string_view name) {
  std::string const kept(name.substr(0, 15));
  ::pthread_setname_np(::pthread_self(), kept.c_str());
}

void wake_on_time() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // [ns]
}

ProcessState process_state(std::int64_t process) {
  std::ifstream status(str("/proc/", process, "/status"));
  auto found = ProcessState::gone;
  for (std::string line; std::getline(status, line);) {
    auto const value = trim(std::string_view(line).substr(line.find(':') + 1));
    if (line.starts_with("State:") && !value.starts_with("Z") && !value.starts_with("X"))
      found = value.starts_with("T") ? ProcessState::stopped : ProcessState::lives;
    if (line.starts_with("TracerPid:") && found != ProcessState::gone && value != "0")
      return ProcessState::traced;
  }
  return found;
}

std::uint64_t process_space() {
  struct stat space {};
  return ::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown processor", vector_extension;
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) model = trim(line.substr(line.find(':') + 1));
    if (!line.starts_with("flags")) continue;
    for (auto [flag, name] : {std::pair{" avx2 ", "AVX2"},
                              {" avx512f ", "AVX-512"},
                              {" avx512_bf16 ", "AVX-512 bf16"},
                              {" amx_bf16 ", "AMX bf16"}})
      if ((line + " ").find(flag) != std::string::npos) vector_extension = name;
    break;
  }
  return vector_extension.empty() ? model : model + ", " + vector_extension;
}

std::int64_t resident_bytes() {
  return own_memory().resident;
}

std::int64_t available_bytes() {
  std::int64_t available = 0;
  std::ifstream info("/proc/meminfo");
  for (std::string name, rest; info >> name; std::getline(info, rest))
    if (name == "MemAvailable:" && info >> available) break;
  available *= 1024;
  auto const limit = address_space_limit();
  if (limit == RLIM_INFINITY) return available;
  auto const left = static_cast<std::int64_t>(limit) - own_memory().mapped;
  return std::clamp<std::int64_t>(left, 0, available);
}

bool limits_address_space() {
  return address_space_limit() != RLIM_INFINITY;
}

std::int64_t machine_bytes() {
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

double process_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](timeval const& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double busy_seconds(std::vector<int> const& cores) {
  std::ifstream file("/proc/stat");  // of each core: user nice system idle iowait irq softirq steal
  double ticks = 0;
  std::size_t found = 0;
  for (std::string name; file >> name;
       file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    bool const is_core = name.starts_with("cpu") && name.size() > 3;
    if (!is_core || std::ranges::count(cores, std::atoi(name.c_str() + 3)) == 0) continue;
    std::array<double, 8> spent{};
    for (auto& each : spent) file >> each;
    constexpr std::size_t idle = 3, waiting = 4;
    ticks += std::accumulate(spent.begin(), spent.end(), -spent[idle] - spent[waiting]);
    ++found;
  }
  bool const all = !cores.empty() && found == cores.size();
  return all ? ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)) : std::nan("");
}

bool shows_to_person(int descriptor) {
  auto const* const terminal = std::getenv("TERM");
  bool const is_dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  if (is_dumb || ::isatty(descriptor) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::error_code unknown;
  auto const launcher =
      std::filesystem::read_symlink(str("/proc/", ::getppid(), "/fd/", descriptor), unknown);
  return !unknown &&
         (launcher.string().starts_with("/dev/pts/") || launcher.string().starts_with("/dev/tty"));
}

}  // namespace stratagem
