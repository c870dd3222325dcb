#pragma once

#include <vector>

#include "data/batch.hpp"

namespace stratagem {

/// `count` batches of consecutive samples, equally large. Copies, so that each starts as a tensor
/// of its own would: the same kernels run on it whoever cut it.
inline std::vector<Batch> split(Batch const& batch, int count) {
  if (count == 1) return {batch};
  auto const size = batch.size() / count;
  std::vector<Batch> parts;
  for (int i = 0; i < count; ++i) {
    auto part = batch;
    part.inputs = batch.inputs.narrow(0, i * size, size).clone();
    part.labels = batch.labels.narrow(0, i * size, size).clone();
    part.first_slot += i * size;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace stratagem
