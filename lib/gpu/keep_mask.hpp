#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "gpu/device.hpp"

namespace stratagem::gpu {

/// Which elements of [samples, count] are kept: element i of sample s where the i-th word of the
/// sequence first + s, as a number in [0, 1), is at least p.
struct KeepMask {
  CounterRandom random;
  std::uint64_t first;  ///< the sequence of sample 0
  std::int64_t samples, count;
  double p;
};

/// Writes 1 for what is kept and 0 for the rest to `target`, fp32 [samples, count], in the memory
/// of a GPU, on its compute stream.
void fill(KeepMask const& mask, float* target, Device const& device);

}  // namespace stratagem::gpu
