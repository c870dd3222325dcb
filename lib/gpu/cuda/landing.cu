#include "gpu/cuda/floats.cuh"
#include "gpu/cuda/landing_kernel.hpp"

namespace stratagem::gpu {
namespace {

constexpr int threads = 512;

template <class To, class From>
__device__ void land_piece(To* __restrict__ to, From const* __restrict__ from, std::int64_t count,
                           bool adds) {
#pragma unroll 4
  for (auto i = std::int64_t{threadIdx.x}; i < count; i += threads)
    round_to(to[i], adds ? widen(to[i]) + widen(from[i]) : widen(from[i]));
}

template <class To>
__device__ void land_piece(To* to, Landing const& landing, std::int64_t begin, std::int64_t count) {
  switch (landing.from_type) {
    case Element::fp32:
      return land_piece(to, static_cast<float const*>(landing.from) + begin, count, landing.adds);
    case Element::bf16:
      return land_piece(to, static_cast<__nv_bfloat16 const*>(landing.from) + begin, count,
                        landing.adds);
    case Element::fp16:
      return land_piece(to, static_cast<__half const*>(landing.from) + begin, count, landing.adds);
  }
}

__global__ void __launch_bounds__(threads) land(const __grid_constant__ LandingLaunch launch) {
  auto const block = static_cast<std::int32_t>(blockIdx.x);
  int low = 0, high = launch.count;  // the landing of this block is in [low, high)
  while (high - low > 1) {
    int const middle = (low + high) / 2;
    (launch.first_block[middle] <= block ? low : high) = middle;
  }
  auto const& landing = launch.landings[low];
  auto const begin = std::int64_t{block - launch.first_block[low]} * LandingLaunch::piece;
  auto const rest = landing.count - begin;
  auto const count = rest < LandingLaunch::piece ? rest : LandingLaunch::piece;
  switch (landing.to_type) {
    case Element::fp32:
      return land_piece(static_cast<float*>(landing.to) + begin, landing, begin, count);
    case Element::bf16:
      return land_piece(static_cast<__nv_bfloat16*>(landing.to) + begin, landing, begin, count);
    case Element::fp16:
      return land_piece(static_cast<__half*>(landing.to) + begin, landing, begin, count);
  }
}

}  // namespace

cudaError_t launch(LandingLaunch const& launch, cudaStream_t stream) {
  static_assert(sizeof(LandingLaunch) <= 4096);
  land<<<static_cast<unsigned>(launch.first_block[launch.count]), threads, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace stratagem::gpu
