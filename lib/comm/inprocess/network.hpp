#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.hpp"

namespace stratagem {

/// Messages in flight between simulated ranks. A random sequence, from a seed, decides which one
/// arrives next; the order is kept only where one event follows from another.
class Network {
 public:
  explicit Network(std::uint64_t seed) : random_(seed, "network") {}

  /// An event that will happen between these ranks.
  void add(std::vector<int> ranks, std::function<void()> arrival);
  /// One of them happens; false if nothing is in flight.
  bool deliver_one();
  /// Anything in flight from or to the rank may be lost.
  void lose(int rank);
  bool chance() { return random_.word64(drawn_++) % 2 == 0; }

 private:
  struct UnderWay {
    std::vector<int> ranks;
    std::function<void()> arrival;
  };

  CounterRandom random_;
  std::uint64_t drawn_ = 0;
  std::vector<UnderWay> under_way_;
};

}  // namespace stratagem
