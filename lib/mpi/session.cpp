#include "mpi/session.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mpi/comm_shared.hpp"
#include "mpi/error.hpp"
#include "mpi/launcher.hpp"
#include "mpi/patience.hpp"

namespace stratagem::mpi {
namespace {

constexpr std::chrono::minutes longest_start{10};  // many ranks load large libraries

int native(ThreadLevel level) {
  switch (level) {
    case ThreadLevel::funneled:
      return MPI_THREAD_FUNNELED;
    case ThreadLevel::serialized:
      return MPI_THREAD_SERIALIZED;
    case ThreadLevel::multiple:
      return MPI_THREAD_MULTIPLE;
  }
  return MPI_THREAD_SINGLE;
}

/// What Open MPI is told from 5.0 on, unless the user has told it already.
void advise_open_mpi() {
  // On nodes with IPv4 and IPv6 addresses it prints for each pair of ranks that TCP finds no route
  // between them, although they share memory and do not need one. Its older method of pairing
  // addresses prints nothing.
  if (on_one_node(process_environment())) ::setenv("OMPI_MCA_reachable", "weighted", 0);
  // Up to 5.0.9 a rank that has no room for an answer to a message keeps it for ever
  // (open-mpi/ompi#13408). Where ranks of a node may not read each other's memory it has room for
  // 512 answers at a time, and with this for over 3000: what their shared memory holds.
  ::setenv("OMPI_MCA_btl_sm_free_list_max", "-1", 0);
}

ThreadLevel initialise(ThreadLevel required, Patience& patience) {
  advise_open_mpi();
  int provided = MPI_THREAD_SINGLE;
  Patience::Wait const wait(patience, "MPI_Init_thread");
  check(MPI_Init_thread(nullptr, nullptr, native(required), &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  patience.set_rank(rank);
  if (provided >= MPI_THREAD_MULTIPLE) return ThreadLevel::multiple;
  if (provided >= MPI_THREAD_SERIALIZED) return ThreadLevel::serialized;
  return ThreadLevel::funneled;
}

std::atomic<bool> under_way = false;  // a Session exists; global, because exit() asks for it

/// A call of exit() somewhere would look like success, and leave the other ranks alone.
void refuse_exit() {
  if (!under_way) return;
  std::fputs("stratagem: error: the process ends in the middle of its work\n", stderr);
  ::_exit(to_int(ExitCode::unexpected));
}

}  // namespace

std::string to_string(ThreadLevel level) {
  switch (level) {
    case ThreadLevel::funneled:
      return "funneled";
    case ThreadLevel::serialized:
      return "serialized";
    case ThreadLevel::multiple:
      return "multiple";
  }
  return "unknown";
}

Session::Session(ThreadLevel required)
    : exceptions_at_start_(std::uncaught_exceptions()),
      patience_(std::make_shared<Patience>(longest_start)),
      provided_(initialise(required, *patience_)) {
  if (provided_ < required) {
    MPI_Finalize();
    throw Error(ExitCode::environment, str("MPI offers thread level ", to_string(provided_)),
                str("this program needs ", to_string(required)),
                "use an MPI library built with thread support");
  }
  if (!under_way.exchange(true)) std::atexit(refuse_exit);
}

Session::~Session() {
  under_way = false;
  if (std::uncaught_exceptions() != exceptions_at_start_) return;
  Patience::Wait const wait(*patience_, "MPI_Finalize");
  MPI_Finalize();
}

Comm Session::world() const {
  return Comm(std::make_shared<Comm::Shared>(MPI_COMM_WORLD, false, patience_));
}

void Session::wait_at_most(Comm const& comm, std::chrono::seconds limit) {
  comm.shared_->patience->set_limit(limit);
}

void Session::enter(Comm const& comm, std::string phase) {
  comm.shared_->patience->enter(std::move(phase));
}

void Session::abort(ExitCode code) const noexcept {
  under_way = false;
  // MPI_Abort may itself block on a dead peer; then the alarm ends the process.
  std::signal(SIGALRM, [](int) { ::_exit(to_int(ExitCode::unexpected)); });
  ::alarm(2);
  MPI_Abort(MPI_COMM_WORLD, to_int(code));
  ::_exit(to_int(code));
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  // "Open MPI v4.1.4, package: ..." -> "Open MPI v4.1.4"
  std::string const whole(text, static_cast<std::size_t>(length));
  return std::string(trim(whole.substr(0, whole.find_first_of(",\n"))));
}

}  // namespace stratagem::mpi
