#include <algorithm>

#include "base/arithmetic.hpp"
#include "gpu/cuda/column_sums.cuh"
#include "gpu/cuda/layer_kernels.hpp"
#include "gpu/layers/activation.hpp"

namespace stratagem::gpu {
namespace {

constexpr int most_threads = 256;

/// A thread per vector: nothing is added up.
template <class T>
__global__ void __launch_bounds__(most_threads) forward(BiasForward pass) {
  auto const vectors = pass.maps.channels / width;
  auto const vector = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  auto const row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (vector >= vectors || row >= pass.maps.rows) return;
  auto y = Vector<T>::load_again(pass.y, row * vectors + vector);
  auto const bias = Vector<T>::load_parameters(pass.bias, vector);
  for (int i = 0; i < width; ++i)
    y.values[i] = activated(Activation::relu, y.values[i] + bias.values[i]);
  y.store(pass.y, row * vectors + vector);
}

template <class T, int vectors>
__device__ Sums terms(BiasBackward const& pass, Tile<T, vectors> const& tile) {
  float sums[width]{}, none[width]{};
#pragma unroll 4
  for (auto row = tile.begin; row < tile.end; row += tile.strides) {
    auto const y = Vector<T>::load(pass.y, tile.place(row));
    auto gradient = Vector<T>::load(pass.of_y, tile.place(row));
    for (int i = 0; i < width; ++i) {
      gradient.values[i] = gradient_before(Activation::relu, y.values[i], gradient.values[i]);
      sums[i] += gradient.values[i];
    }
    gradient.store(pass.of_x, tile.place(row));
  }
  return sum_over_threads<T, vectors>(sums, none);
}

template <class T, int vectors>
__device__ void finish(BiasBackward const& pass, Tile<T, vectors> const& tile, Sums const& sums) {
  if (tile.has_channel()) round_to(static_cast<T*>(pass.of_bias)[tile.channel()], sums.first);
}

template <class T>
void submit(BiasForward const& pass, cudaStream_t stream) {
  auto const vectors = pass.maps.channels / width;
  auto const across = static_cast<unsigned>(std::min<std::int64_t>(vectors, most_threads));
  dim3 const block(across, most_threads / across);
  dim3 const grid(static_cast<unsigned>(ceil_div(pass.maps.rows, block.y)),
                  static_cast<unsigned>(ceil_div(vectors, across)));
  forward<T><<<grid, block, 0, stream>>>(pass);
}

}  // namespace

cudaError_t launch(BiasForward const& pass, cudaStream_t stream) {
  with_type(pass.maps.type, [&](auto zero) { submit<decltype(zero)>(pass, stream); });
  return cudaGetLastError();
}

cudaError_t launch(BiasBackward const& pass, cudaStream_t stream) {
  with_type(pass.maps.type, [&](auto zero) { submit<decltype(zero)>(pass, Finish::sums, stream); });
  return cudaGetLastError();
}

}  // namespace stratagem::gpu
