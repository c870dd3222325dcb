#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stratagem {

/// Hash of a dense tensor's memory, by the device that holds it, where a copy to the host would
/// take longer than the steps between: the sum over its words x_i of K (2 i + 1) x_i modulo 2^64.
/// Every factor is odd, so that no single change leaves it as it was.
std::uint64_t device_hash(at::Tensor const& tensor);

}  // namespace stratagem
