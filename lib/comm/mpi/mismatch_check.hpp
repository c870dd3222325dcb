#pragma once

#include <memory>
#include <optional>

#include "base/error.hpp"
#include "comm/collective_log.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// When a rank cannot continue, the ranks of a group exchange which collectives they have called.
/// Only the progress thread uses this class.
class MismatchCheck {
 public:
  /// Collective over `comm`. `log` is this rank's, and must outlive the mismatch_check.
  MismatchCheck(mpi::Comm const& comm, CollectiveLog const& log);
  ~MismatchCheck();
  MismatchCheck(MismatchCheck const&) = delete;
  MismatchCheck& operator=(MismatchCheck const&) = delete;

  /// Sends this rank's calls to the next rank. Done once by a rank for which nothing has moved for
  /// long.
  void tell_neighbour();
  /// Whether the calls received from the previous rank, if any, differ from this rank's.
  bool differs_from_neighbour();

  /// Another rank has begun an mismatch_check, and waits for this rank's log.
  bool called() const;
  /// Collects the answers that arrive within two seconds. Returns Error(mismatch) with the first
  /// difference between the calls, if there is one. Otherwise returns `failure`, the reason why
  /// this rank began the mismatch_check; a rank that only answers returns the reason of another
  /// rank.
  std::optional<Error> hold(std::optional<Error> const& failure) const;

 private:
  struct Letter;

  mpi::Comm comm_;
  CollectiveLog const& log_;
  std::unique_ptr<Letter> letter_;  ///< the last one sent to the neighbour
};

}  // namespace stratagem
