#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "h5/handle.hpp"

namespace stratagem::h5 {

/// An HDF5 call failed. Names the file and the library's innermost reason. Exit code io.
class Hdf5Error : public Error {
 public:
  explicit Hdf5Error(std::string const& action);
};

/// Throws Hdf5Error if `result` is negative, as HDF5's failures are.
void check(std::int64_t result, std::string const& action);
/// The identifier, owned. Throws if it is negative.
Handle owned(std::int64_t id, std::string const& action);

/// Settings of the library for this process, before its first use: no messages on stderr, no
/// clean-up at exit, file locks only if the file system supports them.
void initialise_library();

/// "1.10.8": version of the loaded library.
std::string library_version();

}  // namespace stratagem::h5
