#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// Cores this process may run on (its affinity mask), in increasing order.
std::vector<int> usable_cores();

std::string host_name();
/// Name of the calling thread, for `top -H`, profilers and debuggers. The system keeps 15
/// characters.
void name_thread(std::string_view name);
/// Makes sleeps of the calling thread end on time, not up to 50 us later, as is the system's
/// default.
void wake_on_time();
/// State of a process. A zombie counts as gone; `traced`: held by a debugger.
enum class ProcessState { gone, stopped, traced, lives };
/// State of a process on this host.
ProcessState process_state(std::int64_t process);
inline bool process_lives(std::int64_t process) {
  return process_state(process) != ProcessState::gone;
}
/// Process namespace. Processes with the same one see each other under the same ids; containers may
/// have their own.
std::uint64_t process_space();
/// Name from /proc/cpuinfo, with the widest vector extension: "AMD EPYC 7543, AVX2".
std::string processor_name();

/// Lets this process open as many files as its hard limit allows, up to 65,536: many systems start
/// programs with 1,024.
void allow_many_files();

/// Resident set of this process [B]; 0 if the system does not say.
std::int64_t resident_bytes();
/// What this process may still allocate: the smaller of what its limit on address space and the
/// machine's memory leave [B]; 0 if the system does not say.
std::int64_t available_bytes();
/// Whether this process has a limit on its address space (`ulimit -v`).
bool limits_address_space();
/// Memory of the machine [B].
std::int64_t machine_bytes();
/// CPU time used by all threads of this process, user and system [s].
double process_cpu_seconds();
/// Time since the start of the system in which these cores computed for anybody, a hypervisor's
/// other guests included [s]; NaN if the system does not tell.
double busy_seconds(std::vector<int> const& cores);

/// True if a person reads `descriptor`: it is a terminal, not a pipe or file, and one that can draw
/// a line again (TERM is not "dumb"). Open MPI's launcher gives every rank a pseudo-terminal, so
/// under it the launcher's own descriptor is checked.
bool shows_to_person(int descriptor);

}  // namespace stratagem
