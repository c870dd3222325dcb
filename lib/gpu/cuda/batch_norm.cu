#include "gpu/cuda/column_sums.cuh"
#include "gpu/cuda/layer_kernels.hpp"
#include "gpu/layers/batch_norm_rule.hpp"

namespace stratagem::gpu {
namespace {

template <class T, int vectors>
__device__ Sums terms(NormForward const& pass, Tile<T, vectors> const& tile) {
  float sums[width]{}, squares[width]{};
  if (tile.begin < tile.end) {
    auto const first = Vector<T>::load(pass.x, tile.own_vector);
#pragma unroll 4
    for (auto row = tile.begin; row < tile.end; row += tile.strides) {
      auto const x = Vector<T>::load(pass.x, tile.place(row));
      for (int i = 0; i < width; ++i) {
        float const offset = x.values[i] - first.values[i];
        sums[i] += offset;
        squares[i] += offset * offset;
      }
    }
  }
  return sum_over_threads<T, vectors>(sums, squares);
}

/// By the first block of the column's slices, for the passes that follow.
template <class T, int vectors>
__device__ ChannelMap keep_moments(NormForward const& pass, Tile<T, vectors> const& tile,
                                   Sums const& sums) {
  auto const channel = tile.channel();
  float const first = widen(static_cast<T const*>(pass.x)[channel]);
  auto const moments = moments_of(first, sums.first, sums.second, pass.maps.rows);
  float const inverse = inverse_deviation_of(moments.variance, pass.eps);
  if (blockIdx.y == 0) {
    pass.mean[channel] = moments.mean;
    pass.inverse_deviation[channel] = inverse;
    pass.running_mean[channel] = moved(pass.running_mean[channel], moments.mean, pass.momentum);
    pass.running_var[channel] =
        moved(pass.running_var[channel], unbiased(moments.variance, pass.maps.rows), pass.momentum);
  }
  return {moments.mean, inverse * pass.weight[channel], pass.bias[channel]};
}

template <class T, int vectors>
__device__ void finish(NormForward const& pass, Tile<T, vectors> const& tile, Sums const& sums) {
  __shared__ ChannelMap shared[Tile<T, vectors>::columns];
  if (tile.has_channel()) shared[threadIdx.x] = keep_moments(pass, tile, sums);
  __syncthreads();
  if (tile.begin >= tile.end) return;
  ChannelMap maps[width];
  for (int i = 0; i < width; ++i) maps[i] = shared[tile.column(i)];
#pragma unroll 2
  for (auto row = tile.begin; row < tile.end; row += tile.strides) {
    auto vector = Vector<T>::load(pass.x, tile.place(row));
    for (int i = 0; i < width; ++i) vector.values[i] = maps[i](vector.values[i]);
    if (pass.added != nullptr) {
      auto const added = Vector<T>::load(pass.added, tile.place(row));
      for (int i = 0; i < width; ++i) vector.values[i] += added.values[i];
    }
    for (int i = 0; i < width; ++i) vector.values[i] = activated(pass.activation, vector.values[i]);
    vector.store(pass.y, tile.place(row));
  }
}

/// Gradients of the maps' results, of a thread's vector in a row.
template <class T, int vectors>
__device__ Vector<T> of_results(NormBackward const& pass, Tile<T, vectors> const& tile,
                                std::int64_t row, Vector<T> const& x, ChannelMap const* maps) {
  auto gradient = Vector<T>::load(pass.of_y, tile.place(row));
  if (pass.activation == Activation::none) return gradient;
  Vector<T> results;
  if (pass.of_added != nullptr)
    results = Vector<T>::load(pass.y, tile.place(row));
  else
    for (int i = 0; i < width; ++i) results.values[i] = maps[i](x.values[i]);
  for (int i = 0; i < width; ++i)
    gradient.values[i] = gradient_before(pass.activation, results.values[i], gradient.values[i]);
  return gradient;
}

template <class T, int vectors>
__device__ void load_maps(NormBackward const& pass, Tile<T, vectors> const& tile, ChannelMap* maps,
                          float* inverse_deviations) {
  for (int i = 0; i < width; ++i) {
    auto const channel = tile.first_channel + tile.column(i);
    inverse_deviations[i] = pass.inverse_deviation[channel];
    maps[i] = {pass.mean[channel], inverse_deviations[i] * pass.weight[channel],
               pass.bias[channel]};
  }
}

template <class T, int vectors>
__device__ Sums terms(NormBackward const& pass, Tile<T, vectors> const& tile) {
  float sums[width]{}, products[width]{};
  if (tile.begin < tile.end) {
    ChannelMap maps[width];
    float inverse_deviations[width];
    load_maps(pass, tile, maps, inverse_deviations);
#pragma unroll 2
    for (auto row = tile.begin; row < tile.end; row += tile.strides) {
      auto const x = Vector<T>::load(pass.x, tile.place(row));
      auto const gradient = of_results(pass, tile, row, x, maps);
      if (pass.of_added != nullptr) gradient.store(pass.of_added, tile.place(row));
      for (int i = 0; i < width; ++i) {
        float const normalised = (x.values[i] - maps[i].mean) * inverse_deviations[i];
        sums[i] += gradient.values[i];
        products[i] += gradient.values[i] * normalised;
      }
    }
  }
  return sum_over_threads<T, vectors>(sums, products);
}

template <class T, int vectors>
__device__ void finish(NormBackward const& pass, Tile<T, vectors> const& tile, Sums const& sums) {
  __shared__ Sums means[Tile<T, vectors>::columns];
  if (tile.has_channel()) {
    auto const count = static_cast<float>(pass.maps.rows);
    means[threadIdx.x] = {sums.first / count, sums.second / count};
    if (blockIdx.y == 0) {
      pass.of_bias[tile.channel()] = sums.first;
      pass.of_weight[tile.channel()] = sums.second;
    }
  }
  __syncthreads();
  if (tile.begin >= tile.end) return;
  ChannelMap maps[width];
  float inverse_deviations[width];
  load_maps(pass, tile, maps, inverse_deviations);
  ChannelGradient of_values[width];
  for (int i = 0; i < width; ++i) {
    auto const mean = means[tile.column(i)];
    of_values[i] = {maps[i].mean, inverse_deviations[i], maps[i].scale, mean.first, mean.second};
  }
#pragma unroll 2
  for (auto row = tile.begin; row < tile.end; row += tile.strides) {
    auto const x = Vector<T>::load(pass.x, tile.place(row));
    auto gradient = pass.of_added != nullptr ? Vector<T>::load_again(pass.of_added, tile.place(row))
                                             : of_results(pass, tile, row, x, maps);
    for (int i = 0; i < width; ++i)
      gradient.values[i] = of_values[i](x.values[i], gradient.values[i]);
    gradient.store(pass.of_x, tile.place(row));
  }
}

}  // namespace

cudaError_t launch(NormForward const& pass, cudaStream_t stream) {
  with_type(pass.maps.type, [&](auto zero) { submit<decltype(zero)>(pass, Finish::rows, stream); });
  return cudaGetLastError();
}

cudaError_t launch(NormBackward const& pass, cudaStream_t stream) {
  with_type(pass.maps.type, [&](auto zero) { submit<decltype(zero)>(pass, Finish::rows, stream); });
  return cudaGetLastError();
}

}  // namespace stratagem::gpu
