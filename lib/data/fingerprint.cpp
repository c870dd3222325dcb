#include "data/fingerprint.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <ATen/ATen.h>

#include "base/hash/hash.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t most_sizes = 16384;
constexpr std::int64_t least_read = 64, most_read = 4096;
constexpr std::int64_t read_bytes = 16 << 20;

void add(Hash& hash, std::int64_t value) {
  hash.add(static_cast<std::uint64_t>(value));
}

void add(Hash& hash, at::Tensor const& tensor) {
  for (auto const size : tensor.sizes()) add(hash, size);
  hash.add({static_cast<std::byte const*>(tensor.const_data_ptr()), tensor.nbytes()});
}

/// Visits `count` of the images of a set, from the first to the last, as far apart as possible.
template <class Visit>
void each_of(SampleSet const& set, std::int64_t count, Visit const& visit) {
  auto const gaps = std::max<std::int64_t>(count - 1, 1);
  for (std::int64_t i = 0; i < count; ++i) visit(set.first_stored + i * (set.size() - 1) / gaps);
}

void add_stored(Hash& hash, SampleSet const& set) {
  auto const& store = *set.store;
  for (std::int64_t i = 0; i < set.size(); ++i) hash.add(store.identity(set.first_stored + i));
  auto const sized = std::min(set.size(), most_sizes);
  std::int64_t bytes = 0;
  each_of(set, sized, [&](std::int64_t image) {
    auto const size = store.stored_bytes(image);
    add(hash, size);
    bytes += size;
  });
  if (sized == 0) return;
  auto const fitting = read_bytes / std::max<std::int64_t>(bytes / sized, 1);
  std::vector<std::byte> image_bytes;
  each_of(set, std::min(set.size(), std::clamp(fitting, least_read, most_read)),
          [&](std::int64_t image) {
            store.load(image, image_bytes);
            hash.add(std::span<std::byte const>(image_bytes));
          });
}

}  // namespace

std::string fingerprint(Dataset const& dataset) {
  Hash hash;
  for (auto const* set : {&dataset.train, &dataset.test}) {
    if (set->text) {
      hash.add(set->text->identity());
      add(hash, set->first_stored);
      add(hash, set->size());
      continue;
    }
    if (!set->store) add(hash, set->images);
    add(hash, set->labels);
    if (set->store) add_stored(hash, *set);
  }
  return hash.hex();
}

}  // namespace stratagem
