#pragma once

#include <cstdint>
#include <string>

namespace stratagem {

/// utc_time() for names of files: without colons, which other systems, archives and `scp` take for
/// something else.
std::string time_name(std::int64_t wall_ns);

}  // namespace stratagem
