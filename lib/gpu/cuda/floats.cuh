#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/element.hpp"

namespace stratagem::gpu {
namespace {

// Numbers of the types that kernels know, as fp32; rounded to the nearest.

__device__ float widen(float value) {
  return value;
}
__device__ float widen(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ float widen(__half value) {
  return __half2float(value);
}
__device__ void round_to(float& place, float value) {
  place = value;
}
__device__ void round_to(__nv_bfloat16& place, float value) {
  place = __float2bfloat16_rn(value);
}
__device__ void round_to(__half& place, float value) {
  place = __float2half_rn(value);
}

/// use(0), where 0 is of the device's type of `element`.
template <class Use>
void with_type(Element element, Use const& use) {
  switch (element) {
    case Element::fp32:
      return use(float{});
    case Element::bf16:
      return use(__nv_bfloat16{});
    case Element::fp16:
      return use(__half{});
  }
}

}  // namespace
}  // namespace stratagem::gpu
