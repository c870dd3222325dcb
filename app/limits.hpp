#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stratagem::app {

/// HDF5 can be led to take any memory and time by a file made for it. Bounds both for this process,
/// at more than the trace files among `inputs`, and in folders among them, can need.
void limit_for_reading(std::vector<std::string> const& inputs);

}  // namespace stratagem::app
