#pragma once

#include <cstdint>
#include <type_traits>

#include <ATen/core/Tensor.h>

#include "optim/elementwise.hpp"

namespace stratagem {

/// Calls `kernel` with a number of elements and pointers to them in each of the tensors, which are
/// 1-D, of one size and of one type, fp32 or fp64, on the CPU; piece by piece, on several threads.
template <class Kernel, class... Tensors>
void for_pieces(Kernel kernel, at::Tensor const& first, Tensors const&... others) {
  for_slices(first.numel(), [&](std::int64_t begin, std::int64_t end) {
    if (first.scalar_type() == at::kFloat)
      kernel(end - begin, first.data_ptr<float>() + begin,
             (others.template data_ptr<float>() + begin)...);
    else
      kernel(end - begin, first.data_ptr<double>() + begin,
             (others.template data_ptr<double>() + begin)...);
    return true;
  });
}

/// `factor` in the type that a kernel's pointers have.
template <class Pointer>
auto as_element(Pointer /*elements*/, double factor) {
  return static_cast<std::remove_const_t<std::remove_pointer_t<Pointer>>>(factor);
}

}  // namespace stratagem
