#pragma once

#include <filesystem>
#include <functional>

namespace stratagem::h5 {

/// A damaged file can make HDF5 crash, run without end or take all memory. Calls `read`, which
/// reads `path`, in a child process with bounds on time and memory; Error(bad_data), which names
/// the file and what happened, when it comes to no end there. An exception of `read` is an end: the
/// caller meets it when it reads the file itself.
void try_in_child(std::filesystem::path const& path, std::function<void()> const& read);

}  // namespace stratagem::h5
