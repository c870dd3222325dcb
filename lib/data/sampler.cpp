#include "data/sampler.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/contract.hpp"

namespace stratagem {

void shuffle(CounterRandom const& random, std::int64_t epoch, std::span<std::int64_t> values) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> keys;
  keys.reserve(values.size());
  for (auto const value : values)
    keys.emplace_back(
        random.word64(static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(epoch)), value);
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) values[i] = keys[i].second;
}

namespace {

std::vector<std::int64_t> numbers(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t images) {
  auto order = numbers(images);
  shuffle(CounterRandom(seed, "order"), epoch, order);
  return order;
}

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t images,
                                      Runs const& runs) {
  if (runs.parts.empty()) return epoch_order(seed, epoch, images);
  auto which = numbers(std::ssize(runs.parts));
  shuffle(CounterRandom(seed, "order of runs"), epoch, which);
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(images));
  for (auto const run : which) {
    auto const [begin, end] = runs.parts[static_cast<std::size_t>(run)];
    for (auto image = begin; image < end; ++image) order.push_back(image);
  }
  ensures(std::ssize(order) == images, "runs hold every image once");
  CounterRandom const random(seed, "order");
  for (std::int64_t begin = 0; begin < images; begin += runs.window)
    shuffle(
        random, epoch,
        std::span(order).subspan(static_cast<std::size_t>(begin),
                                 static_cast<std::size_t>(std::min(runs.window, images - begin))));
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
