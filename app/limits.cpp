#include "app/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

std::uintmax_t bytes_of(fs::path const& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return fs::file_size(path, ignored);
  std::uintmax_t sum = 0;
  for (auto const& entry : fs::recursive_directory_iterator(path, ignored))
    if (entry.path().extension() == ".h5" && entry.is_regular_file(ignored))
      sum += entry.file_size(ignored);
  return sum;
}

/// Of this process, now.
std::uintmax_t address_space() {
  std::uintmax_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uintmax_t>(::sysconf(_SC_PAGESIZE));
}

template <class Resource>
void lower(Resource resource, std::uintmax_t limit) {
  rlimit set{};
  if (::getrlimit(resource, &set) != 0) return;
  set.rlim_cur = std::min<rlim_t>(set.rlim_cur, limit);
  ::setrlimit(resource, &set);
}

}  // namespace

void limit_for_reading(std::vector<std::string> const& inputs) {
  std::uintmax_t bytes = 0;
  for (auto const& input : inputs) bytes += bytes_of(input);
  constexpr std::uintmax_t least = std::uintmax_t{4} << 30, times = 32;
  lower(RLIMIT_AS, address_space() + least + times * bytes);
  constexpr std::uintmax_t least_s = 600, bytes_per_s = 1'000'000;
  lower(RLIMIT_CPU, least_s + bytes / bytes_per_s);
}

}  // namespace stratagem::app
