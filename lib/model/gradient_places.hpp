#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace stratagem {

/// Where the gradients of a block's parameters are wanted, while its backward pass runs: an
/// operation that can compute one there saves a copy of it. Shared with what autograd keeps.
struct GradientPlaces final : torch::CustomClassHolder {
  std::vector<at::Tensor> places;  ///< in the frame's order; undefined: as autograd returns it
  std::vector<bool> landed;        ///< which are there

  void open(std::size_t count) {
    places.assign(count, {});
    landed.assign(count, false);
  }
  /// Where to compute a gradient; undefined where that is not wanted, or something is there
  /// already.
  at::Tensor take(int parameter) {
    auto const index = static_cast<std::size_t>(parameter);
    if (index >= places.size() || landed[index]) return {};
    return places[index];
  }
  void close() { places.clear(); }
};

}  // namespace stratagem
