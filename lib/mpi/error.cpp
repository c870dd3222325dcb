#include "mpi/error.hpp"

#include <mpi.h>

#include "base/text.hpp"

namespace stratagem::mpi {
namespace {

std::string reason(int mpi_code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(mpi_code, text, &length) != MPI_SUCCESS) return str("code ", mpi_code);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

MpiError::MpiError(int mpi_code, char const* call, std::source_location where)
    : Error(ExitCode::peer_lost, str(call, " failed at ", where.file_name(), ":", where.line()),
            reason(mpi_code), "look at the first rank that ended"),
      mpi_code_(mpi_code) {}

void check(int mpi_code, char const* call, std::source_location where) {
  if (mpi_code != MPI_SUCCESS) throw MpiError(mpi_code, call, where);
}

}  // namespace stratagem::mpi
