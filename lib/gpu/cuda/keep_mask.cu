#include "gpu/cuda/keep_mask_kernel.hpp"

#include "base/arithmetic.hpp"
#include "base/philox.hpp"

namespace stratagem::gpu {
namespace {

constexpr int threads = 256;

/// Each thread makes the four elements of one counter.
__global__ void keep(MaskLaunch mask, float* target) {
  auto const of_sample = (mask.count + 3) / 4;
  auto const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= mask.samples * of_sample) return;
  auto const sample = place / of_sample, quad = place % of_sample;
  auto const first = mask.first + (mask.later == nullptr ? 0 : *mask.later);
  auto const words = philox({mask.key[0], mask.key[1]}, static_cast<std::uint64_t>(quad),
                            first + static_cast<std::uint64_t>(sample));
  for (int i = 0; i < 4 && 4 * quad + i < mask.count; ++i)
    target[sample * mask.count + 4 * quad + i] = to_unit_float(words[i]) >= mask.p ? 1.0F : 0.0F;
}

}  // namespace

cudaError_t launch(MaskLaunch const& mask, float* target, cudaStream_t stream) {
  auto const counters = mask.samples * ((mask.count + 3) / 4);
  auto const blocks = static_cast<unsigned>(ceil_div(counters, threads));
  keep<<<blocks, threads, 0, stream>>>(mask, target);
  return cudaGetLastError();
}

}  // namespace stratagem::gpu
