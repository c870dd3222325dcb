#pragma once

#include <type_traits>

#include "base/arithmetic.hpp"
#include "gpu/cuda/floats.cuh"
#include "gpu/layers/maps.hpp"

namespace stratagem::gpu {
namespace {

// What kernels on maps share: a block per group of columns and slice, in the order of ColumnSums.

constexpr int threads = ColumnSums::threads, width = ColumnSums::width;
constexpr int warps = threads / ColumnSums::warp;

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
  /// From parameters, which may lie anywhere.
  static __device__ Vector load_parameters(void const* parameters, std::int64_t number) {
    if (reinterpret_cast<std::uintptr_t>(parameters) % sizeof(Bytes) == 0)
      return load(parameters, number);
    Vector vector;
    for (int i = 0; i < width; ++i)
      vector.values[i] = widen(static_cast<T const*>(parameters)[number * width + i]);
    return vector;
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

  __device__ Tile(Maps const& maps, ColumnSums const& order)
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
  /// Each of the first threads has a channel, if there are as many.
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
  auto const warp = threadIdx.x / ColumnSums::warp, lane = threadIdx.x % ColumnSums::warp;
  for (int i = 0; i < width; ++i) {
    for (int apart = ColumnSums::warp / 2; apart >= vectors; apart /= 2) {
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
__device__ Sums sum_over_slices(Tile<T, vectors> const& tile, ColumnSums const& order,
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

/// The sums of one slice.
template <class T, int vectors>
__device__ void keep_sums(Tile<T, vectors> const& tile, Sums const& sums, float* scratch) {
  if (tile.has_channel()) of_slices(scratch)[blockIdx.y * tile.channels + tile.channel()] = sums;
}

/// ColumnSums::vectors of maps in one slice and in several.
template <class T>
constexpr int of_whole = sizeof(T) == 4 ? 2 : 4;
template <class T>
constexpr int of_slice = 2 * of_whole<T>;

// A pass over columns has two functions: terms(pass, tile) sums what it needs of a block's rows,
// and finish(pass, tile, sums) goes on with the sums of all rows. One kernel where a block has all
// rows of its columns, otherwise two.

template <class T, class Pass>
__global__ void __launch_bounds__(threads) whole_columns(Pass const pass, ColumnSums const order) {
  Tile<T, of_whole<T>> const tile(pass.maps, order);
  finish(pass, tile, terms(pass, tile));
}

template <class T, class Pass>
__global__ void __launch_bounds__(threads) sum_slices(Pass const pass, ColumnSums const order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  keep_sums(tile, terms(pass, tile), pass.scratch);
}

template <class T, class Pass>
__global__ void __launch_bounds__(threads) finish_slices(Pass const pass, ColumnSums const order) {
  Tile<T, of_slice<T>> const tile(pass.maps, order);
  finish(pass, tile, sum_over_slices(tile, order, pass.scratch));
}

/// Blocks per group of columns and slice.
dim3 blocks_of(Maps const& maps, ColumnSums const& order) {
  auto const groups = ceil_div(maps.channels, order.columns());
  return {static_cast<unsigned>(groups), static_cast<unsigned>(order.slices)};
}

/// What finish() does: it goes over the rows, or has only the sums to write.
enum class Finish { rows, sums };

template <class T, class Pass>
void submit(Pass const& pass, Finish what, cudaStream_t stream) {
  ColumnSums const order(pass.maps);
  auto const blocks = blocks_of(pass.maps, order);
  if (order.one_slice) {
    whole_columns<T><<<blocks, threads, 0, stream>>>(pass, order);
    return;
  }
  sum_slices<T><<<blocks, threads, 0, stream>>>(pass, order);
  auto const last = what == Finish::rows ? blocks : dim3(blocks.x);
  finish_slices<T><<<last, threads, 0, stream>>>(pass, order);
}

}  // namespace
}  // namespace stratagem::gpu
