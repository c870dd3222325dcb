#include "comm/inprocess/network.hpp"

#include <algorithm>
#include <utility>

namespace stratagem {

void Network::add(std::vector<int> ranks, std::function<void()> arrival) {
  under_way_.push_back({std::move(ranks), std::move(arrival)});
}

bool Network::deliver_one() {
  if (under_way_.empty()) return false;
  std::swap(under_way_[random_.word64(drawn_++) % under_way_.size()], under_way_.back());
  auto const arrival = std::move(under_way_.back().arrival);
  under_way_.pop_back();
  arrival();  // which may put more messages in flight
  return true;
}

void Network::lose(int rank) {
  std::erase_if(under_way_, [&](UnderWay const& thing) {
    return std::ranges::count(thing.ranks, rank) > 0 && chance();
  });
}

}  // namespace stratagem
