#pragma once

#include "mpi/comm.hpp"

namespace stratagem::test {

/// All ranks of the test program; only in programs made by add_mpi_tests.
mpi::Comm const& world();

}  // namespace stratagem::test
