#pragma once

#include <ATen/ATen.h>

#include "data/dataset.hpp"

namespace stratagem::test {

/// `count` training images whose pixels are all different combinations, with labels 0, 1, ... 9, 0.
inline Dataset tiny_dataset(std::int64_t count, std::int64_t channels, std::int64_t edge) {
  auto const pixels = count * channels * edge * edge;
  SampleSet const set{
      at::arange(pixels).mul(37).remainder(251).to(at::kByte).view({count, channels, edge, edge}),
      at::arange(count).remainder(10)};
  Dataset dataset{.name = "tiny", .train = set, .test = set, .may_flip = true};
  for (std::int64_t c = 0; c < channels; ++c) {
    dataset.mean.push_back(0.4 + 0.1 * static_cast<double>(c));
    dataset.stddev.push_back(0.2 + 0.05 * static_cast<double>(c));
  }
  return dataset;
}

}  // namespace stratagem::test
