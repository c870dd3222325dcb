#include "gpu/layers/activation.hpp"
#include "gpu/cuda/column_sums.cuh"
#include "gpu/cuda/layer_kernels.hpp"

namespace stratagem::gpu {
namespace {

/// Two vectors at a time: a load does not pass the store before it.
template <class T, int vectors>
__global__ void __launch_bounds__(threads) forward(BiasForward pass, ColumnSums order) {
  Tile<T, vectors> const tile(pass.maps, order);
  if (tile.begin >= tile.end) return;
  auto const bias = Vector<T>::load_parameters(pass.bias, tile.own_vector);
  auto const finish = [&](Vector<T>& vector, std::int64_t row) {
    for (int i = 0; i < width; ++i)
      vector.values[i] = activated(Activation::relu, vector.values[i] + bias.values[i]);
    vector.store(pass.y, tile.place(row));
  };
  for (auto row = tile.begin; row < tile.end; row += 2 * tile.strides) {
    auto const next = row + tile.strides;
    bool const both = next < tile.end;
    auto first = Vector<T>::load_again(pass.y, tile.place(row));
    auto second = Vector<T>::load_again(pass.y, tile.place(both ? next : row));
    finish(first, row);
    if (both) finish(second, next);
  }
}

template <class T, int vectors>
__device__ Sums backward_sums(BiasBackward const& pass, Tile<T, vectors> const& tile) {
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
__device__ void keep_gradient(BiasBackward const& pass, Tile<T, vectors> const& tile,
                              Sums const& sums) {
  if (tile.has_channel()) round_to(static_cast<T*>(pass.of_bias)[tile.channel()], sums.first);
}

template <class T>
__global__ void __launch_bounds__(threads)
    backward_of_columns(BiasBackward pass, ColumnSums order) {
  Tile<T, of_whole<T>> const tile(pass.maps, order);
  keep_gradient(pass, tile, backward_sums(pass, tile));
}
template <class T>
__global__ void __launch_bounds__(threads) backward_of_slices(BiasBackward pass, ColumnSums order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  keep_sums(tile, backward_sums(pass, tile), pass.scratch);
}
template <class T>
__global__ void __launch_bounds__(threads) add_slices(BiasBackward pass, ColumnSums order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  keep_gradient(pass, tile, sum_over_slices(tile, order, pass.scratch));
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

template <class T>
void submit(BiasBackward const& pass, cudaStream_t stream) {
  ColumnSums const order(pass.maps);
  auto const blocks = blocks_of(pass.maps, order);
  if (order.one_slice) {
    backward_of_columns<T><<<blocks, threads, 0, stream>>>(pass, order);
    return;
  }
  backward_of_slices<T><<<blocks, threads, 0, stream>>>(pass, order);
  add_slices<T><<<blocks.x, threads, 0, stream>>>(pass, order);
}

template <class Pass>
cudaError_t launch_typed(Pass const& pass, cudaStream_t stream) {
  switch (pass.maps.type) {
    case Element::fp32:
      submit<float>(pass, stream);
      break;
    case Element::bf16:
      submit<__nv_bfloat16>(pass, stream);
      break;
    case Element::fp16:
      submit<__half>(pass, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch(BiasForward const& pass, cudaStream_t stream) {
  return launch_typed(pass, stream);
}

cudaError_t launch(BiasBackward const& pass, cudaStream_t stream) {
  return launch_typed(pass, stream);
}

}  // namespace stratagem::gpu
