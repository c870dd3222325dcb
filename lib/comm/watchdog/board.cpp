#include "comm/watchdog/board.hpp"

#include <new>

#include <unistd.h>

#include "base/system.hpp"

namespace stratagem {

Board::Board(mpi::Comm const& world)
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
}

}  // namespace stratagem
