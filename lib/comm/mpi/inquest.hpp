#pragma once

#include <memory>
#include <optional>

#include "base/error.hpp"
#include "comm/collective_log.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// What the ranks of a group tell one another when one of them does not get on: which collectives
/// they have called. Only the progress thread uses it.
class Inquest {
 public:
  /// Collective over `comm`. `log`, of this rank, outlives it.
  Inquest(mpi::Comm const& comm, CollectiveLog const& log);
  ~Inquest();
  Inquest(Inquest const&) = delete;
  Inquest& operator=(Inquest const&) = delete;

  /// Tells the next rank what this one has called: whoever looks for long in vain does so once.
  void tell_neighbour();
  /// What the rank before has told, if it has, differs from what this one has called.
  bool differs_from_neighbour();

  /// Another rank holds one, and waits for this rank's log.
  bool called() const;
  /// Hears all that answer within two seconds. Error(mismatch) naming the first difference in what
  /// they have called, where there is one; else `failure`, why this rank holds it, or, where it
  /// only was called, what another rank says.
  std::optional<Error> hold(std::optional<Error> const& failure) const;

 private:
  struct Letter;

  mpi::Comm comm_;
  CollectiveLog const& log_;
  std::unique_ptr<Letter> letter_;  ///< to the neighbour, the last one
};

}  // namespace stratagem
