#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace stratagem {

/// The ranks of a run and the groups that they form; one per process. Operations of one group begin
/// in the order of their calls. Groups do not wait for each other: ranks may call the collectives
/// of two groups in different orders.
class World {
 public:
  virtual ~World() = default;

  /// The group of all ranks.
  virtual Communicator& all() = 0;
  /// The group that `ranks` form, ascending; rank i of the group is ranks[i]. Lives as long as the
  /// world; asked for again, it is the same. `name`, one word, stands in messages. Collective over
  /// all ranks: each gives the group to which it belongs, alone if need be. AgreedError(mismatch)
  /// if ranks of a group give different ranks.
  Communicator& group(std::string const& name, std::vector<int> const& ranks);

  /// Bytes that this rank has sent in all groups.
  std::int64_t bytes_sent();
  /// What `body` calls in each group, and what it sends.
  using Kept = std::vector<Communicator::Kept>;
  Kept keep(std::function<void()> const& body);
  /// A graph that was kept runs again.
  void repeat(Kept const& kept);

 private:
  /// One text per rank, in rank order. Collective over all ranks, which are here.
  virtual std::vector<std::string> gather(std::string const& text) = 0;
  /// Collective over all ranks, which agree on their groups.
  virtual std::unique_ptr<Communicator> open(std::string const& name,
                                             std::vector<int> const& ranks) = 0;
  /// all() and the groups, in the order in which they were opened.
  std::vector<Communicator*> communicators();

  std::vector<std::unique_ptr<Communicator>> groups_;
  std::map<std::string, Communicator*> found_;  ///< by what all ranks gave
};

}  // namespace stratagem
