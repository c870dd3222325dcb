#include "comm/watchdog/status_table.hpp"

#include <algorithm>
#include <new>

#include <unistd.h>

#include "base/system.hpp"
#include "comm/watchdog/heartbeat_ring.hpp"

namespace stratagem {

StatusTable::StatusTable(mpi::Comm const& world)
    : node_(world.split_node()),
      memory_(node_, sizeof(Slot)),
      own_(static_cast<std::size_t>(node_.rank())) {
  auto* const slot = new (memory_.part(node_.rank()).data()) Slot;
  slot->rank = world.rank();
  slot->process = ::getpid();
  slot->process_space = process_space();
  node_.barrier();
  for (int rank = 0; rank < node_.size(); ++rank)
    slots_.push_back(std::launder(reinterpret_cast<Slot*>(memory_.part(rank).data())));
  auto const leads = world.all_gather(own_ == 0 ? "leads" : "");
  std::vector<int> leaders;
  for (int rank = 0; rank < world.size(); ++rank)
    if (!leads[static_cast<std::size_t>(rank)].empty()) leaders.push_back(rank);
  if (leaders.size() < 2) return;
  among_nodes_ = world.duplicate();
  if (own_ != 0) return;
  auto const place =
      static_cast<std::size_t>(std::ranges::find(leaders, world.rank()) - leaders.begin());
  previous_ = leaders[(place + leaders.size() - 1) % leaders.size()];
  next_ = leaders[(place + 1) % leaders.size()];
  upstream_.rank = previous_;
  slots_.push_back(&upstream_);
}

std::unique_ptr<PeriodicTask> StatusTable::ring() {
  if (!among_nodes_ || own_ != 0) return nullptr;
  return std::make_unique<HeartbeatRing>(*among_nodes_, previous_, next_, upstream_);
}

}  // namespace stratagem
