#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/collective_log.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

/// When a rank cannot continue, all ranks exchange which collectives they have called in each of
/// their groups. Only the progress thread uses this class while it runs.
class MismatchCheck {
 public:
  /// Collective over `all`, the group of all ranks. Logs are this rank's, and must outlive the
  /// check.
  MismatchCheck(mpi::Comm const& all, CollectiveLog const& log);
  ~MismatchCheck();
  MismatchCheck(MismatchCheck const&) = delete;
  MismatchCheck& operator=(MismatchCheck const&) = delete;

  /// Another group to watch. `name`: one word, which no other group of these ranks has. Collective
  /// over `group`.
  void add(mpi::Comm const& group, std::string const& name, CollectiveLog const& log);

  /// Sends this rank's calls in each group to the next rank of the group. Done once by a rank for
  /// which nothing has moved for long.
  void tell_neighbours();
  /// Whether the calls received from the previous rank of a group, if any, differ from this rank's.
  bool differs_from_neighbours();

  /// Another rank has begun a check, and waits for this rank's logs.
  bool called() const;
  /// Collects the answers that arrive within two seconds. Returns Error(mismatch) with the first
  /// difference between the calls, if there is one. Otherwise returns `failure`, the reason why
  /// this rank began the check; a rank that only answers returns the reason of another rank.
  std::optional<Error> hold(std::optional<Error> const& failure) const;

 private:
  struct Letter;
  struct Group {
    mpi::Comm comm;
    std::string name;
    CollectiveLog const* log;
    std::unique_ptr<Letter> letter;  ///< the last one sent to the neighbour
  };

  std::vector<std::string> logs() const;

  std::vector<Group> groups_;  ///< that of all ranks first
};

}  // namespace stratagem
