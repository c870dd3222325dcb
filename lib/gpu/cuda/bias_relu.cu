#include "gpu/cuda/column_sums.cuh"
#include "gpu/cuda/layer_kernels.hpp"
#include "gpu/layers/activation.hpp"

namespace stratagem::gpu {
namespace {

/// Two vectors at a time: a load does not pass the store before it.
template <class T, int vectors>
__global__ void __launch_bounds__(threads) forward(BiasForward pass, ColumnSums order) {
  Tile<T, vectors> const tile(pass.maps, order);
  if (tile.begin >= tile.end) return;
  auto const bias = Vector<T>::load_parameters(pass.bias, tile.own_vector);
  auto const write = [&](Vector<T>& vector, std::int64_t row) {
    for (int i = 0; i < width; ++i)
      vector.values[i] = activated(Activation::relu, vector.values[i] + bias.values[i]);
    vector.store(pass.y, tile.place(row));
  };
  for (auto row = tile.begin; row < tile.end; row += 2 * tile.strides) {
    auto const next = row + tile.strides;
    bool const both = next < tile.end;
    auto first = Vector<T>::load_again(pass.y, tile.place(row));
    auto second = Vector<T>::load_again(pass.y, tile.place(both ? next : row));
    write(first, row);
    if (both) write(second, next);
  }
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
  ColumnSums const order(pass.maps);
  auto const blocks = blocks_of(pass.maps, order);
  if (order.one_slice)
    forward<T, of_whole<T>><<<blocks, threads, 0, stream>>>(pass, order);
  else
    forward<T, of_slice<T>><<<blocks, threads, 0, stream>>>(pass, order);
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
