#include "strategy/placement.hpp"

#include <algorithm>
#include <utility>

#include "base/contract.hpp"
#include "base/hash/hash.hpp"

namespace stratagem {

Placement::Placement(int ranks) : Placement(ranks, {}) {}

Placement::Placement(int ranks, std::vector<int> servers)
    : seats_(static_cast<std::size_t>(ranks)), servers_(std::move(servers)) {
  expects(std::ranges::is_sorted(servers_), "servers are in rank order");
  for (int server = 0; server < this->servers(); ++server)
    seats_.at(static_cast<std::size_t>(rank_of_server(server))).server = server;
  for (int rank = 0; rank < ranks; ++rank) {
    if (serves(rank)) continue;
    seats_[static_cast<std::size_t>(rank)].worker = workers();
    workers_.push_back(rank);
  }
}

Seat Placement::seat_of(int rank) const {
  return seats_.at(static_cast<std::size_t>(rank));
}

std::optional<RankSlice> Placement::slice_of(int rank) const {
  auto const seat = seat_of(rank);
  if (seat.worker < 0) return std::nullopt;
  return RankSlice{seat.worker, workers()};
}

std::uint64_t Placement::hash() const {
  Hash hash;
  for (auto const rank : servers_) hash.add(static_cast<std::uint64_t>(rank));
  return hash.add(static_cast<std::uint64_t>(ranks())).value();
}

}  // namespace stratagem
