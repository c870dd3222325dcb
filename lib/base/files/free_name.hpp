#pragma once

#include <filesystem>

namespace stratagem {

/// `path`, or, where something is there, the first of path-2, path-3 and so on where nothing is:
/// for names that are made from the time, which may come twice within a second.
std::filesystem::path free_name(std::filesystem::path const& path);

}  // namespace stratagem
