#include "strategy/fedavg/answers.hpp"

#include <algorithm>
#include <numeric>

#include "base/contract.hpp"
#include "base/random.hpp"

namespace stratagem {

bool Answers::lives(int place) const {
  return std::ranges::binary_search(living, place);
}

Answers answers_of(int drawn, int lost, std::uint64_t seed, std::int64_t round) {
  expects(0 <= lost && lost < drawn, "somebody answers");
  CounterRandom const random(seed, "lost clients");
  std::vector<int> places(static_cast<std::size_t>(drawn));
  std::iota(places.begin(), places.end(), 0);
  std::ranges::stable_sort(places, {}, [&](int place) {
    return random.word64(static_cast<std::uint64_t>(place), static_cast<std::uint64_t>(round));
  });
  auto const end = places.begin() + lost;
  Answers answers{.living = {end, places.end()}, .lost = {places.begin(), end}};
  std::ranges::sort(answers.living);
  std::ranges::sort(answers.lost);
  return answers;
}

}  // namespace stratagem
