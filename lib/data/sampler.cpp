#include "data/sampler.hpp"

#include <algorithm>
#include <utility>

#include "base/contract.hpp"
#include "base/random.hpp"

namespace stratagem {

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t images) {
  CounterRandom const random(seed, "order");
  std::vector<std::pair<std::uint64_t, std::int64_t>> keys;
  keys.reserve(static_cast<std::size_t>(images));
  for (std::int64_t i = 0; i < images; ++i)
    keys.emplace_back(
        random.word64(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(epoch)), i);
  std::sort(keys.begin(), keys.end());
  std::vector<std::int64_t> order;
  order.reserve(keys.size());
  for (auto const& [key, image] : keys) order.push_back(image);
  return order;
}

std::int64_t steps_per_epoch(std::int64_t images, std::int64_t global_batch) {
  expects(global_batch > 0, "a global batch holds images");
  return images / global_batch;
}

IndexRange RankSlice::of_batch(std::int64_t global_batch) const {
  expects(0 <= rank && rank < ranks, "the rank is one of the ranks");
  expects(global_batch % ranks == 0, "the number of ranks divides the global batch");
  auto const share = global_batch / ranks;
  return {rank * share, (rank + 1) * share};
}

IndexRange RankSlice::of_evaluation(std::int64_t images) const {
  expects(0 <= rank && rank < ranks, "the rank is one of the ranks");
  return {rank * images / ranks, (rank + 1) * images / ranks};
}

}  // namespace stratagem
