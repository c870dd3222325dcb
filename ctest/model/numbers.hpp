#pragma once

#include <string>

#include <ATen/ATen.h>

#include "params/initialise.hpp"

namespace stratagem::test {

/// Normally distributed, another tensor for each name.
inline at::Tensor random(std::string const& name, at::IntArrayRef sizes) {
  auto const values = at::empty(sizes);
  initialise(values, {name, sizes.vec(), Initialiser::normal(1)}, 1);
  return values;
}

/// Of a from b, in parts of b; fp64.
inline double distance(at::Tensor const& a, at::Tensor const& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>() /
         b.to(at::kDouble).norm().item<double>();
}

}  // namespace stratagem::test
