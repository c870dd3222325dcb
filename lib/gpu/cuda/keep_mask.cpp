#include "gpu/keep_mask.hpp"

#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"
#include "gpu/cuda/keep_mask_kernel.hpp"

namespace stratagem::gpu {

void fill(KeepMask const& mask, float* target, Device const& device) {
  auto const key = mask.random.key();
  check(launch({.key = {key[0], key[1]},
                .first = mask.first,
                .samples = mask.samples,
                .count = mask.count,
                .p = mask.p,
                .later = mask.later},
               target, torch_stream(device)),
        "keep_mask");
}

}  // namespace stratagem::gpu
