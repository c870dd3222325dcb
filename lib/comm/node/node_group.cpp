#include "comm/node/node_group.hpp"

#include <algorithm>
#include <utility>

#include "base/contract.hpp"

namespace stratagem {

NodeGroup::NodeGroup(std::shared_ptr<NodeArena> arena, std::vector<Member> members)
    : arena_(std::move(arena)), members_(std::move(members)) {
  auto const own = std::ranges::find(members_, arena_->rank(), &Member::rank);
  expects(own != members_.end(), "this rank among the members");
  rank_ = static_cast<int>(own - members_.begin());
}

}  // namespace stratagem
