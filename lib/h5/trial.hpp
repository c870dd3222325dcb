#pragma once

#include <filesystem>
#include <functional>

namespace stratagem::h5 {

/// A damaged file can make HDF5 crash, loop forever or take all memory. Calls `read`, which reads
/// `path`, in a child process with limits on time and memory. Error(bad_data), with the file and
/// what happened, if the child does not come to an end. An exception thrown by `read` counts as an
/// end: the caller gets it when it reads the file itself.
void try_in_child(std::filesystem::path const& path, std::function<void()> const& read);

}  // namespace stratagem::h5
