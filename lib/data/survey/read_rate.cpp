#include "data/survey/read_rate.hpp"

#include <algorithm>
#include <span>

#include "base/clock.hpp"
#include "base/contract.hpp"

namespace stratagem {

double read_rate(Dataset const& dataset, InputFormat const& format, double seconds) {
  expects(dataset.train.store != nullptr, "the images are on disk");
  constexpr std::int64_t batch = 32;
  BatchMaker const maker(dataset, format);
  Augmenter const augmenter(Augmentation::standard, 0, dataset.may_flip);
  auto const& train = dataset.train;
  auto const order = epoch_order(0, 0, train.size(), train.runs());
  std::int64_t next = 0;
  auto const read_batch = [&] {
    auto const count = std::min(batch, train.size() - next);
    maker.gather(
        train,
        std::span(order).subspan(static_cast<std::size_t>(next), static_cast<std::size_t>(count)),
        augmenter, 0);
    next = next + count < train.size() ? next + count : 0;
    return count;
  };
  read_batch();
  auto const begin = monotonic_ns();
  std::int64_t images = 0, now = begin;
  while (static_cast<double>(now - begin) < 1e9 * seconds) {
    images += read_batch();
    now = monotonic_ns();
  }
  return static_cast<double>(images) / (1e-9 * static_cast<double>(now - begin));
}

}  // namespace stratagem
