#pragma once

#include <mpi.h>

#include "mpi/comm.hpp"

namespace stratagem::mpi {

/// The communicator behind all copies of a Comm; only the sources of this folder see it.
struct Comm::Shared {
  Shared(MPI_Comm handle, bool owned) : handle(handle), owned(owned) {}
  ~Shared();
  Shared(Shared const&) = delete;
  Shared& operator=(Shared const&) = delete;

  mutable MPI_Comm handle;
  bool owned;  ///< false for MPI_COMM_WORLD
};

}  // namespace stratagem::mpi
