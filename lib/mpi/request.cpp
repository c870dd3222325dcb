#include "mpi/request.hpp"

#include "mpi/error.hpp"
#include "mpi/handle.hpp"

namespace stratagem::mpi {

bool Request::test() {
  if (handle_ == none) return true;
  auto request = from_word<MPI_Request>(handle_);
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0) handle_ = none;
  return done != 0;
}

void Request::wait() {
  if (handle_ == none) return;
  auto request = from_word<MPI_Request>(handle_);
  check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
  handle_ = none;
}

bool test_all(std::span<Request> requests) {
  bool all = true;
  for (auto& request : requests) all = request.test() && all;
  return all;
}

}  // namespace stratagem::mpi
