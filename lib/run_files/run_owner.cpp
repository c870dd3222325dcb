#include "run_files/run_owner.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr double clocks_differ_s = 2;

/// How long ago a process began [s]; 0 when the system does not tell.
double age_s(std::int64_t process) {
  double up_s = 0;
  std::ifstream("/proc/uptime") >> up_s;
  std::ostringstream text;
  text << std::ifstream(str("/proc/", process, "/stat")).rdbuf();
  // The process's name, in parentheses, may hold anything; the 20th field after it is its begin.
  auto const stat = text.str();
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string skipped;
  for (int field = 0; field < 19; ++field) fields >> skipped;
  double began_ticks = 0;
  if (!(fields >> began_ticks)) return 0;
  return up_s - began_ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

bool owner_lives(Outcome const& outcome) {
  if (!process_lives(outcome.process)) return false;
  auto const written_s = static_cast<double>(wall_ns() - outcome.updated_wall_ns) * 1e-9;
  return age_s(outcome.process) > written_s - clocks_differ_s;
}

}  // namespace stratagem
