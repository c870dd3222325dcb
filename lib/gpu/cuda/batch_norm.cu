#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/batch_norm_rule.hpp"
#include "gpu/cuda/batch_norm_kernel.hpp"

namespace stratagem::gpu {
namespace {

constexpr int threads = NormSums::threads, width = NormSums::width;
constexpr int warps = threads / NormSums::warp;

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

/// Values of consecutive channels.
template <class T>
struct Vector {
  using Bytes = std::conditional_t<sizeof(T) == 4, uint4, uint2>;

  float values[width];

  /// From maps that the kernel only reads.
  static __device__ Vector load(void const* maps, std::int64_t number) {
    return widened(__ldg(static_cast<Bytes const*>(maps) + number));
  }
  static __device__ Vector load_again(void const* maps, std::int64_t number) {
    return widened(static_cast<Bytes const*>(maps)[number]);
  }
  __device__ void store(void* maps, std::int64_t number) const {
    T narrow[width];
    for (int i = 0; i < width; ++i) round_to(narrow[i], values[i]);
    Bytes bytes;
    memcpy(&bytes, narrow, sizeof(bytes));
    static_cast<Bytes*>(maps)[number] = bytes;
  }

 private:
  static __device__ Vector widened(Bytes const& bytes) {
    T narrow[width];
    memcpy(narrow, &bytes, sizeof(bytes));
    Vector vector;
    for (int i = 0; i < width; ++i) vector.values[i] = widen(narrow[i]);
    return vector;
  }
};

/// The part of the maps that a block of threads has: the columns of `vectors` vectors, and the rows
/// of a slice; a thread has one vector of every strides-th row.
template <class T, int vectors>
struct Tile {
  static constexpr int columns = vectors * width;
  static constexpr int strides = threads / vectors;

  std::int64_t row_vectors;  ///< of a whole row
  std::int64_t own_vector;   ///< of the thread, in a row
  std::int64_t begin, end;   ///< rows of the thread's column: begin, begin + strides, ...
  std::int64_t first_channel;
  std::int64_t channels;

  __device__ Tile(Maps const& maps, NormSums const& order)
      : row_vectors(maps.channels / width),
        own_vector(std::int64_t{blockIdx.x} * vectors + threadIdx.x % vectors),
        begin(std::int64_t{blockIdx.y} * order.rows + threadIdx.x / vectors),
        end(own_vector < row_vectors ? min((blockIdx.y + 1) * order.rows, maps.rows) : 0),
        first_channel(std::int64_t{blockIdx.x} * columns),
        channels(maps.channels) {}

  __device__ std::int64_t place(std::int64_t row) const { return row * row_vectors + own_vector; }
  /// Of the thread's vector, among the block's columns.
  static __device__ int column(int i) {
    return static_cast<int>(threadIdx.x) % vectors * width + i;
  }
  /// A channel for each of the first threads, or no thread's.
  __device__ bool has_channel() const {
    return threadIdx.x < columns && first_channel + threadIdx.x < channels;
  }
  __device__ std::int64_t channel() const { return first_channel + threadIdx.x; }
};

/// Two sums of a channel.
struct Sums {
  float first, second;
};

/// Over all threads; each of the first `columns` threads gets those of its channel.
template <class T, int vectors>
__device__ Sums sum_over_threads(float (&first)[width], float (&second)[width]) {
  constexpr int columns = vectors * width;
  __shared__ Sums of_warps[warps][columns];
  auto const warp = threadIdx.x / NormSums::warp, lane = threadIdx.x % NormSums::warp;
  for (int i = 0; i < width; ++i) {
    for (int apart = NormSums::warp / 2; apart >= vectors; apart /= 2) {
      first[i] += __shfl_xor_sync(~0U, first[i], apart);
      second[i] += __shfl_xor_sync(~0U, second[i], apart);
    }
    if (lane < vectors) of_warps[warp][lane * width + i] = {first[i], second[i]};
  }
  __syncthreads();
  Sums sum{0, 0};
  if (threadIdx.x < columns)
    for (int i = 0; i < warps; ++i) {
      sum.first += of_warps[i][threadIdx.x].first;
      sum.second += of_warps[i][threadIdx.x].second;
    }
  return sum;
}

/// Sums of slices: [slices, channels].
__device__ Sums* of_slices(float* scratch) {
  return reinterpret_cast<Sums*>(scratch);
}

/// Over all slices; each of the first `columns` threads gets those of its channel.
template <class T, int vectors>
__device__ Sums sum_over_slices(Tile<T, vectors> const& tile, NormSums const& order,
                                float* scratch) {
  constexpr int columns = Tile<T, vectors>::columns, parts = threads / columns;
  __shared__ Sums of_parts[parts][columns];
  int const column = threadIdx.x % columns, part = threadIdx.x / columns;
  Sums sum{0, 0};
  if (tile.first_channel + column < tile.channels) {
    auto const* own = of_slices(scratch) + tile.first_channel + column;
#pragma unroll 4
    for (std::int64_t slice = part; slice < order.slices; slice += parts) {
      auto const of_slice = own[slice * tile.channels];
      sum.first += of_slice.first;
      sum.second += of_slice.second;
    }
  }
  of_parts[part][column] = sum;
  __syncthreads();
  sum = {0, 0};
  if (threadIdx.x < columns)
    for (int i = 0; i < parts; ++i) {
      sum.first += of_parts[i][threadIdx.x].first;
      sum.second += of_parts[i][threadIdx.x].second;
    }
  return sum;
}

template <class T, int vectors>
__device__ Sums forward_sums(NormForward const& pass, Tile<T, vectors> const& tile) {
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
  auto const moments = moments_of(first, sums.first, sums.second, pass.maps.rows, pass.eps);
  if (blockIdx.y == 0) {
    pass.mean[channel] = moments.mean;
    pass.inverse_deviation[channel] = moments.inverse_deviation;
    pass.running_mean[channel] = moved(pass.running_mean[channel], moments.mean, pass.momentum);
    pass.running_var[channel] =
        moved(pass.running_var[channel], unbiased(moments.variance, pass.maps.rows), pass.momentum);
  }
  return {moments.mean, moments.inverse_deviation * pass.weight[channel], pass.bias[channel]};
}

template <class T, int vectors>
__device__ void normalise(NormForward const& pass, Tile<T, vectors> const& tile, Sums const& sums) {
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
__device__ Sums backward_sums(NormBackward const& pass, Tile<T, vectors> const& tile) {
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
__device__ void propagate(NormBackward const& pass, Tile<T, vectors> const& tile,
                          Sums const& sums) {
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

/// The sums of one slice.
template <class T, int vectors>
__device__ void keep_sums(Tile<T, vectors> const& tile, Sums const& sums, float* scratch) {
  if (tile.has_channel()) of_slices(scratch)[blockIdx.y * tile.channels + tile.channel()] = sums;
}

// A block per group of columns and slice. One kernel where a block has all rows, otherwise two.

/// NormSums::vectors
template <class T>
constexpr int of_whole = sizeof(T) == 4 ? 2 : 4;
template <class T>
constexpr int of_slice = 2 * of_whole<T>;

template <class T>
__global__ void __launch_bounds__(threads) forward_of_columns(NormForward pass, NormSums order) {
  Tile<T, of_whole<T>> const tile(pass.maps, order);
  normalise(pass, tile, forward_sums(pass, tile));
}
template <class T>
__global__ void __launch_bounds__(threads) forward_of_slices(NormForward pass, NormSums order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  keep_sums(tile, forward_sums(pass, tile), pass.scratch);
}
template <class T>
__global__ void __launch_bounds__(threads) forward_of_all(NormForward pass, NormSums order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  normalise(pass, tile, sum_over_slices(tile, order, pass.scratch));
}

template <class T>
__global__ void __launch_bounds__(threads) backward_of_columns(NormBackward pass, NormSums order) {
  Tile<T, of_whole<T>> const tile(pass.maps, order);
  propagate(pass, tile, backward_sums(pass, tile));
}
template <class T>
__global__ void __launch_bounds__(threads) backward_of_slices(NormBackward pass, NormSums order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  keep_sums(tile, backward_sums(pass, tile), pass.scratch);
}
template <class T>
__global__ void __launch_bounds__(threads) backward_of_all(NormBackward pass, NormSums order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  propagate(pass, tile, sum_over_slices(tile, order, pass.scratch));
}

dim3 blocks_of(Maps const& maps, NormSums const& order) {
  auto const groups = (maps.channels + order.columns() - 1) / order.columns();
  return {static_cast<unsigned>(groups), static_cast<unsigned>(order.slices)};
}

template <class T>
void submit(NormForward const& pass, NormSums const& order, dim3 blocks, cudaStream_t stream) {
  if (order.one_slice) {
    forward_of_columns<T><<<blocks, threads, 0, stream>>>(pass, order);
    return;
  }
  forward_of_slices<T><<<blocks, threads, 0, stream>>>(pass, order);
  forward_of_all<T><<<blocks, threads, 0, stream>>>(pass, order);
}

template <class T>
void submit(NormBackward const& pass, NormSums const& order, dim3 blocks, cudaStream_t stream) {
  if (order.one_slice) {
    backward_of_columns<T><<<blocks, threads, 0, stream>>>(pass, order);
    return;
  }
  backward_of_slices<T><<<blocks, threads, 0, stream>>>(pass, order);
  backward_of_all<T><<<blocks, threads, 0, stream>>>(pass, order);
}

template <class Pass>
cudaError_t launch_typed(Pass const& pass, cudaStream_t stream) {
  NormSums const order(pass.maps);
  auto const blocks = blocks_of(pass.maps, order);
  switch (pass.maps.type) {
    case Element::fp32:
      submit<float>(pass, order, blocks, stream);
      break;
    case Element::bf16:
      submit<__nv_bfloat16>(pass, order, blocks, stream);
      break;
    case Element::fp16:
      submit<__half>(pass, order, blocks, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch(NormForward const& pass, cudaStream_t stream) {
  return launch_typed(pass, stream);
}

cudaError_t launch(NormBackward const& pass, cudaStream_t stream) {
  return launch_typed(pass, stream);
}

}  // namespace stratagem::gpu
