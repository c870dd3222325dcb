#include "gpu/cuda/column_sums.cuh"
#include "gpu/cuda/layer_kernels.hpp"
#include "gpu/layers/batch_norm_rule.hpp"

namespace stratagem::gpu {
namespace {

constexpr int warp_threads = ColumnSums::warp, rows_of_block = 8;

/// The row that a warp has.
struct WarpRow {
  std::int64_t row, vectors;  ///< of a row
  int lane;

  __device__ explicit WarpRow(Maps const& maps)
      : row(std::int64_t{blockIdx.x} * rows_of_block + threadIdx.x / warp_threads),
        vectors(maps.channels / width),
        lane(static_cast<int>(threadIdx.x) % warp_threads) {}

  __device__ std::int64_t place(std::int64_t vector) const { return row * vectors + vector; }
};

/// Over all threads of a warp, for each.
__device__ Sums sum_over_warp(Sums sum) {
  for (int apart = warp_threads / 2; apart > 0; apart /= 2) {
    sum.first += __shfl_xor_sync(~0U, sum.first, apart);
    sum.second += __shfl_xor_sync(~0U, sum.second, apart);
  }
  return sum;
}

template <class T>
__global__ void __launch_bounds__(rows_of_block* warp_threads) forward(LayerNormForward pass) {
  WarpRow const own(pass.maps);
  if (own.row >= pass.maps.rows) return;
  float const first = widen(static_cast<T const*>(pass.x)[own.row * pass.maps.channels]);
  Sums sums{0, 0};
#pragma unroll 4
  for (std::int64_t v = own.lane; v < own.vectors; v += warp_threads) {
    auto const x = Vector<T>::load(pass.x, own.place(v));
    for (int i = 0; i < width; ++i) {
      float const offset = x.values[i] - first;
      sums.first += offset;
      sums.second += offset * offset;
    }
  }
  sums = sum_over_warp(sums);
  auto const moments = moments_of(first, sums.first, sums.second, pass.maps.channels);
  float const inverse = inverse_deviation_of(moments.variance, pass.eps);
  if (own.lane == 0) {
    pass.mean[own.row] = moments.mean;
    pass.inverse_deviation[own.row] = inverse;
  }
#pragma unroll 4
  for (std::int64_t v = own.lane; v < own.vectors; v += warp_threads) {
    auto x = Vector<T>::load(pass.x, own.place(v));
    auto const weight = Vector<float>::load_parameters(pass.weight, v),
               bias = Vector<float>::load_parameters(pass.bias, v);
    for (int i = 0; i < width; ++i) {
      float const normalised = (x.values[i] - moments.mean) * inverse;
      x.values[i] = normalised * weight.values[i] + bias.values[i];
    }
    x.store(pass.y, own.place(v));
  }
}

template <class T>
__global__ void __launch_bounds__(rows_of_block* warp_threads) backward(LayerNormBackward pass) {
  WarpRow const own(pass.maps);
  if (own.row >= pass.maps.rows) return;
  float const inverse_deviation = pass.inverse_deviation[own.row];
  ChannelGradient of_value{pass.mean[own.row], inverse_deviation, inverse_deviation, 0, 0};
  Sums sums{0, 0};
#pragma unroll 2
  for (std::int64_t v = own.lane; v < own.vectors; v += warp_threads) {
    auto const x = Vector<T>::load(pass.x, own.place(v));
    auto const gradient = Vector<T>::load(pass.of_y, own.place(v));
    auto const weight = Vector<float>::load_parameters(pass.weight, v);
    for (int i = 0; i < width; ++i) {
      float const weighted = gradient.values[i] * weight.values[i];
      sums.first += weighted;
      sums.second += weighted * of_value.normalised(x.values[i]);
    }
  }
  sums = sum_over_warp(sums);
  auto const count = static_cast<float>(pass.maps.channels);
  of_value.mean_gradient = sums.first / count;
  of_value.mean_product = sums.second / count;
#pragma unroll 2
  for (std::int64_t v = own.lane; v < own.vectors; v += warp_threads) {
    auto const x = Vector<T>::load(pass.x, own.place(v));
    auto gradient = Vector<T>::load(pass.of_y, own.place(v));
    auto const weight = Vector<float>::load_parameters(pass.weight, v);
    for (int i = 0; i < width; ++i)
      gradient.values[i] = of_value(x.values[i], gradient.values[i] * weight.values[i]);
    gradient.store(pass.of_x, own.place(v));
  }
}

/// Of the weight and the bias.
template <class T, int vectors>
__device__ Sums terms(LayerNormBackward const& pass, Tile<T, vectors> const& tile) {
  float sums[width]{}, products[width]{};
#pragma unroll 4
  for (auto row = tile.begin; row < tile.end; row += tile.strides) {
    auto const x = Vector<T>::load(pass.x, tile.place(row));
    auto const gradient = Vector<T>::load(pass.of_y, tile.place(row));
    float const mean = __ldg(pass.mean + row), inverse = __ldg(pass.inverse_deviation + row);
    for (int i = 0; i < width; ++i) {
      sums[i] += gradient.values[i];
      products[i] += gradient.values[i] * ((x.values[i] - mean) * inverse);
    }
  }
  return sum_over_threads<T, vectors>(sums, products);
}

template <class T, int vectors>
__device__ void finish(LayerNormBackward const& pass, Tile<T, vectors> const& tile,
                       Sums const& sums) {
  if (!tile.has_channel()) return;
  pass.of_bias[tile.channel()] = sums.first;
  pass.of_weight[tile.channel()] = sums.second;
}

unsigned blocks_of_rows(Maps const& maps) {
  return static_cast<unsigned>(ceil_div(maps.rows, rows_of_block));
}

}  // namespace

cudaError_t launch(LayerNormForward const& pass, cudaStream_t stream) {
  with_type(pass.maps.type, [&](auto zero) {
    forward<decltype(zero)>
        <<<blocks_of_rows(pass.maps), rows_of_block * warp_threads, 0, stream>>>(pass);
  });
  return cudaGetLastError();
}

cudaError_t launch(LayerNormBackward const& pass, cudaStream_t stream) {
  with_type(pass.maps.type, [&](auto zero) {
    using T = decltype(zero);
    backward<T><<<blocks_of_rows(pass.maps), rows_of_block * warp_threads, 0, stream>>>(pass);
    submit<T>(pass, Finish::sums, stream);
  });
  return cudaGetLastError();
}

}  // namespace stratagem::gpu
