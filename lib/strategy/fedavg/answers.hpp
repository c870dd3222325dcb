#pragma once

#include <cstdint>
#include <vector>

namespace stratagem {

/// Which clients of a round answer and which are lost: their places, ascending.
struct Answers {
  std::vector<int> living, lost;

  bool lives(int place) const;
};

/// So many of the drawn are lost, drawn from seed and round: any rank knows them.
Answers answers_of(int drawn, int lost, std::uint64_t seed, std::int64_t round);

}  // namespace stratagem
