#pragma once

#include <filesystem>
#include <vector>

namespace stratagem::app {

/// Where inputs/ and slurm/ may be, the likeliest first: STRATAGEM_HOME, and the tree in which the
/// program was installed or built.
std::vector<std::filesystem::path> homes();

}  // namespace stratagem::app
