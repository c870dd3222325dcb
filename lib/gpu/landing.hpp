#pragma once

#include <cstdint>
#include <vector>

#include "gpu/element.hpp"

namespace stratagem::gpu {

struct Device;

/// `count` elements of GPU memory that replace others, or are added to them in fp32. Both lie in
/// the same order, without gaps.
struct Landing {
  void* to;
  void const* from;
  std::int64_t count;
  Element to_type, from_type;
  bool adds = false;
};

/// All of them on the compute stream, many with one kernel: libraries need one for each where types
/// are mixed. Rounded to the nearest, as LibTorch does.
void land(std::vector<Landing> const& landings, Device const& device);

}  // namespace stratagem::gpu
