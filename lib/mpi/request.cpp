#include "mpi/request.hpp"

#include "base/text.hpp"
#include "mpi/error.hpp"
#include "mpi/handle.hpp"

namespace stratagem::mpi {
namespace {

[[noreturn]] void refuse(std::string const& came, int expected) {
  throw Error(ExitCode::mismatch,
              str("a message of ", came, " came where ", expected, " bytes were expected"),
              "ranks called different operations");
}

/// Checks the result of MPI_Test or MPI_Wait for a message of `expected` bytes.
void check_arrival(int mpi_code, char const* call, MPI_Status const& status, int expected) {
  int kind = MPI_SUCCESS;
  if (mpi_code != MPI_SUCCESS) MPI_Error_class(mpi_code, &kind);
  if (kind == MPI_ERR_TRUNCATE) refuse("more bytes", expected);
  check(mpi_code, call);
  int arrived = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &arrived), "MPI_Get_count");
  if (arrived != expected) refuse(str(arrived, " bytes"), expected);
}

}  // namespace

bool Request::test() {
  if (handle_ == none) return true;
  auto request = from_word<MPI_Request>(handle_);
  int done = 0;
  MPI_Status status;
  int const code = MPI_Test(&request, &done, &status);
  if (done == 0 && code == MPI_SUCCESS) return false;
  handle_ = none;
  if (expected_ == is_sent)
    check(code, "MPI_Test");
  else
    check_arrival(code, "MPI_Test", status, expected_);
  return true;
}

void Request::wait() {
  if (handle_ == none) return;
  auto request = from_word<MPI_Request>(handle_);
  MPI_Status status;
  int const code = MPI_Wait(&request, &status);
  handle_ = none;
  if (expected_ == is_sent)
    check(code, "MPI_Wait");
  else
    check_arrival(code, "MPI_Wait", status, expected_);
}

bool test_all(std::span<Request> requests) {
  bool all = true;
  for (auto& request : requests) all = request.test() && all;
  return all;
}

}  // namespace stratagem::mpi
