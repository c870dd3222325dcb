#pragma once

#include <memory>
#include <utility>

#include <mpi.h>

#include "mpi/comm.hpp"
#include "mpi/patience.hpp"

namespace stratagem::mpi {

/// The communicator behind all copies of a Comm; only the sources of this folder use it.
struct Comm::Shared {
  Shared(MPI_Comm handle, bool owned, std::shared_ptr<Patience> patience)
      : handle(handle), owned(owned), patience(std::move(patience)) {}
  ~Shared();
  Shared(Shared const&) = delete;
  Shared& operator=(Shared const&) = delete;

  Patience::Wait wait(char const* call) const { return {*patience, call}; }

  mutable MPI_Comm handle;
  bool owned;  ///< false for what lives as long as MPI
  std::shared_ptr<Patience> patience;
};

}  // namespace stratagem::mpi
