#pragma once

#include <source_location>

#include "base/error.hpp"

namespace stratagem::mpi {

/// A call of the MPI library failed.
class MpiError : public Error {
 public:
  MpiError(int mpi_code, char const* call, std::source_location where);

  int mpi_code() const { return mpi_code_; }

 private:
  int mpi_code_;
};

/// Throws MpiError unless `mpi_code` is MPI_SUCCESS.
void check(int mpi_code, char const* call,
           std::source_location where = std::source_location::current());

}  // namespace stratagem::mpi
