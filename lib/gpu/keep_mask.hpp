#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "gpu/device.hpp"

namespace stratagem::gpu {

/// Which elements of [samples, count] are kept: element i of sample s is kept if the i-th word of
/// sequence first + s, as a number in [0, 1), is at least p.
struct KeepMask {
  CounterRandom random;
  std::uint64_t first;  ///< the sequence of sample 0
  std::int64_t samples, count;
  double p;
  std::uint64_t const* later = nullptr;  ///< in the device's memory; added to `first`
};

/// Writes 1 for kept elements and 0 for the others to `target`, fp32 [samples, count] in GPU
/// memory, on the compute stream.
void fill(KeepMask const& mask, float* target, Device const& device);

}  // namespace stratagem::gpu
