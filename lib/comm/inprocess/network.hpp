#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.hpp"

namespace stratagem {

/// What is under way between simulated ranks. Chance, from a seed, decides what of it arrives next:
/// nothing overtakes only where one thing follows from another.
class Network {
 public:
  explicit Network(std::uint64_t seed) : random_(seed, "network") {}

  /// Something that will happen between these ranks.
  void add(std::vector<int> ranks, std::function<void()> arrival);
  /// One of them happens; false when nothing is under way.
  bool deliver_one();
  /// Each thing under way that the rank has a part in may be lost.
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
