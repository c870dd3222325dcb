#include "mpi/mpirun.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <memory>

#include "base/text.hpp"

namespace stratagem::mpi {
namespace {

/// The first word of digits and points in `text`, at or after `begin`.
std::string version_in(std::string const& text, std::size_t begin = 0) {
  auto const from = text.find_first_of("0123456789", begin);
  if (from == std::string::npos) return {};
  return text.substr(from, text.find_first_not_of("0123456789.", from) - from);
}

int generation(std::string const& version) {
  return static_cast<int>(parse_integer(version.substr(0, version.find('.'))).value_or(0));
}

std::string first_line(std::string const& text) {
  return std::string(trim(text.substr(0, text.find('\n'))));
}

std::string output_of(char const* command) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const pipe(::popen(command, "r"), ::pclose);
  std::string text;
  std::array<char, 4096> block{};
  while (pipe != nullptr) {
    auto const count = std::fread(block.data(), 1, block.size(), pipe.get());
    if (count == 0) break;
    text.append(block.data(), count);
  }
  return text;
}

}  // namespace

std::string Mpirun::name() const {
  return str(library, version.empty() ? "" : " ", version, runtime.empty() ? "" : ", ", runtime);
}

Mpirun Mpirun::parse(std::string const& path, std::string const& told) {
  Mpirun mpirun{.path = path, .library = first_line(told), .version = {}, .runtime = {}};
  if (auto const found = told.find("(Open MPI)"); found != std::string::npos) {
    mpirun.library = "Open MPI";
    mpirun.version = version_in(told, found);
    mpirun.runtime = generation(mpirun.version) >= 5 ? "PRRTE" : "ORTE";
  } else if (told.starts_with("HYDRA")) {
    mpirun.library = "MPICH";
    mpirun.version = version_in(told);
    mpirun.runtime = "Hydra";
  }
  return mpirun;
}

std::optional<Mpirun> mpirun_on_path() {
  auto const told = output_of("command -v mpirun && timeout 10 mpirun --version < /dev/null 2>&1");
  auto const path = first_line(told);
  if (path.empty()) return std::nullopt;
  return Mpirun::parse(path, told.substr(std::min(told.size(), told.find('\n') + 1)));
}

std::string mismatch(Mpirun const& mpirun, std::string const& library_version) {
  bool const same_library = library_version.starts_with(mpirun.library);
  if (same_library && generation(mpirun.version) == generation(version_in(library_version)))
    return {};
  return str("mpirun on PATH (", mpirun.path, ") is of ", mpirun.name(),
             ", this program is linked with ", library_version,
             ": put the mpirun of that library first on PATH, or load its module");
}

}  // namespace stratagem::mpi
