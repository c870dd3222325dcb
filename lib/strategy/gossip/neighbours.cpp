#include "strategy/gossip/neighbours.hpp"

#include <algorithm>
#include <bit>

namespace stratagem {

Neighbours::Neighbours(Graph graph, int workers)
    : graph_(graph),
      workers_(workers),
      levels_(std::max(static_cast<int>(std::bit_width(static_cast<unsigned>(workers - 1))), 1)) {}

bool Neighbours::hears(int worker, int sender, std::int64_t mixing) const {
  if (worker == sender) return false;
  auto const distance = (worker - sender + workers_) % workers_;
  switch (graph_) {
    case Graph::ring:
      return distance == 1 || distance == workers_ - 1;
    case Graph::exponential:
      return distance == 1 << (mixing % levels_);
    case Graph::complete:
      return true;
    case Graph::star:
      return worker == 0 || sender == 0;
  }
  return false;
}

int Neighbours::listeners(int sender) const {
  switch (graph_) {
    case Graph::ring:
      return std::min(workers_ - 1, 2);
    case Graph::exponential:
      return std::min(workers_ - 1, 1);
    case Graph::complete:
      return workers_ - 1;
    case Graph::star:
      return sender == 0 ? workers_ - 1 : 1;
  }
  return 0;
}

double Neighbours::sent(int sender) const {
  return static_cast<float>(1.0 / (listeners(sender) + 1));
}

double Neighbours::weight(int worker, int sender, std::int64_t mixing) const {
  if (worker == sender) return kept(sender);
  return hears(worker, sender, mixing) ? sent(sender) : 0;
}

int Neighbours::reach() const {
  switch (graph_) {
    case Graph::ring:
      return std::max(workers_ / 2, 1);
    case Graph::exponential:
      return levels_;
    case Graph::complete:
      return 1;
    case Graph::star:
      return workers_ > 2 ? 2 : 1;
  }
  return 1;
}

bool Neighbours::doubly_stochastic() const {
  for (int mixing = 0; mixing < period(); ++mixing)
    for (int worker = 0; worker < workers_; ++worker) {
      double sum = 0;
      for (int sender = 0; sender < workers_; ++sender) sum += weight(worker, sender, mixing);
      if (sum != 1) return false;
    }
  return true;
}

}  // namespace stratagem
