#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// Cores this process may run on (its affinity mask), in increasing order.
std::vector<int> usable_cores();

std::string host_name();
/// The calling thread's, for `top -H`, profilers and debuggers; of which the system keeps 15
/// characters.
void name_thread(std::string_view name);
/// The calling thread's sleeps end when they should, not up to 50 us later, as the system prefers.
void wake_on_time();
/// A zombie that nobody waited for is gone, too; `traced`: a debugger holds it.
enum class ProcessState { gone, stopped, traced, lives };
/// Of a process of this host.
ProcessState process_state(std::int64_t process);
inline bool process_lives(std::int64_t process) {
  return process_state(process) != ProcessState::gone;
}
/// Processes that see the same one name each other by the same ids; containers may have their own.
std::uint64_t process_space();
/// As /proc/cpuinfo names it, with the widest vector extension: "AMD EPYC 7543, AVX2".
std::string processor_name();

/// Resident set of this process [B]; 0 when the system does not tell.
std::int64_t resident_bytes();
/// What this process may still allocate: the least of what its limit on address space and the
/// machine's memory leave [B]; 0 when the system does not tell.
std::int64_t available_bytes();
/// CPU time used by all threads of this process, user and system [s].
double process_cpu_seconds();

/// True when `descriptor` shows to a person: a terminal, not a pipe or file. Open MPI's launcher
/// puts a pseudo-terminal before every rank, so under it the launcher's own descriptor is asked.
bool shows_to_person(int descriptor);

}  // namespace stratagem
