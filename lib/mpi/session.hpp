#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/exit_code.hpp"
#include "mpi/comm.hpp"

namespace stratagem::mpi {

/// Who may call MPI: the thread that made the Session / any thread, one at a time / all at once.
enum class ThreadLevel { funneled, serialized, multiple };

std::string to_string(ThreadLevel level);

class Patience;

/// The lifetime of MPI in this process. No call of it, or of its communicators, waits forever for
/// other ranks: the limit is ten minutes, or what wait_at_most() sets. Not finalized while an
/// exception unwinds: a peer may wait for a message that never comes, and the text of the exception
/// is worth more than a clean end.
class Session {
 public:
  /// Error(environment) if the library offers less than `required`.
  explicit Session(ThreadLevel required);
  ~Session();
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  Comm world() const;

  /// For the session of `comm`: how long a call may wait for other ranks from now on before it ends
  /// the process with code stall; and what the ranks do together, for that message.
  static void wait_at_most(Comm const& comm, std::chrono::seconds limit);
  static void enter(Comm const& comm, std::string phase);

  ThreadLevel provided() const { return provided_; }

  /// Ends all ranks. Does not return; the process ends within two seconds, even if MPI hangs.
  [[noreturn]] void abort(ExitCode code) const noexcept;

 private:
  int exceptions_at_start_;
  std::shared_ptr<Patience> patience_;
  ThreadLevel provided_;
};

/// "Open MPI 4.1.4", as the loaded library calls itself.
std::string library_version();

}  // namespace stratagem::mpi
