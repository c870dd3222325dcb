#pragma once

#include <string_view>
#include <vector>

#include "h5/column.hpp"

namespace stratagem::trace {

inline constexpr std::string_view schema_name = "stratagem-rank-trace";
inline constexpr std::string_view collected_schema_name = "stratagem-collected-trace";
inline constexpr std::int64_t schema_version = 4;

/// Rows of /status; the last row is the valid one.
enum class Status : std::int64_t { running = 0, complete = 1, stopped = 2, failed = 3 };

h5::TableSpec const& status_table();
h5::TableSpec const& clock_table();
h5::TableSpec const& names_table();
h5::TableSpec const& steps_table();
h5::TableSpec const& epochs_table();
h5::TableSpec const& spans_table();
h5::TableSpec const& ps_table();
h5::TableSpec const& memory_table();
h5::TableSpec const& memory_breakdown_table();
h5::TableSpec const& device_table();
h5::TableSpec const& events_table();

/// All of the above; parents come before their children.
std::vector<h5::TableSpec> const& tables();

}  // namespace stratagem::trace
