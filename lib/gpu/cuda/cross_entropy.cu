#include <limits>

#include "gpu/cuda/floats.cuh"
#include "gpu/cuda/layer_kernels.hpp"
#include "gpu/layers/elementary.hpp"

namespace stratagem::gpu {
namespace {

constexpr int threads = CrossEntropyPass::threads;

/// Of what each thread has; for all threads.
template <class Number>
__device__ Number sum_of(Number own) {
  __shared__ Number of_threads[threads];
  __syncthreads();
  of_threads[threadIdx.x] = own;
  for (int apart = threads / 2; apart > 0; apart /= 2) {
    __syncthreads();
    if (threadIdx.x < apart) of_threads[threadIdx.x] += of_threads[threadIdx.x + apart];
  }
  __syncthreads();
  return of_threads[0];
}

struct Largest {
  float logit;
  std::int64_t place;

  /// Of two that are equal, the first.
  __device__ void see(float other, std::int64_t at) {
    if (other > logit || (other == logit && at < place)) *this = {other, at};
  }
};

/// For all threads.
__device__ Largest largest_of(Largest own) {
  __shared__ Largest of_threads[threads];
  of_threads[threadIdx.x] = own;
  for (int apart = threads / 2; apart > 0; apart /= 2) {
    __syncthreads();
    if (threadIdx.x < apart) {
      auto const& other = of_threads[threadIdx.x + apart];
      of_threads[threadIdx.x].see(other.logit, other.place);
    }
  }
  __syncthreads();
  return of_threads[0];
}

/// A block per row.
template <class T>
__global__ void __launch_bounds__(threads) rows(CrossEntropyPass pass) {
  auto const row = std::int64_t{blockIdx.x};
  auto const* logits = static_cast<T const*>(pass.logits) + row * pass.classes;
  auto* gradient = static_cast<T*>(pass.gradient) + row * pass.classes;
  Largest own{-std::numeric_limits<float>::infinity(), pass.classes};
#pragma unroll 4
  for (std::int64_t c = threadIdx.x; c < pass.classes; c += threads)
    own.see(widen(__ldg(logits + c)), c);
  auto const largest = largest_of(own);
  float part = 0;
#pragma unroll 4
  for (std::int64_t c = threadIdx.x; c < pass.classes; c += threads)
    part += exponential(widen(__ldg(logits + c)) - largest.logit);
  float const sum = sum_of(part), inverse = 1 / sum;
  float const share = pass.scale / static_cast<float>(pass.rows);
  auto const label = pass.labels[row];
#pragma unroll 4
  for (std::int64_t c = threadIdx.x; c < pass.classes; c += threads) {
    float const probability = exponential(widen(__ldg(logits + c)) - largest.logit) * inverse;
    round_to(gradient[c], (c == label ? probability - 1 : probability) * share);
  }
  if (threadIdx.x > 0) return;
  bool const known = label >= 0 && label < pass.classes;
  pass.row_losses[row] = known ? logarithm(sum) - (widen(logits[label]) - largest.logit)
                               : std::numeric_limits<float>::quiet_NaN();
  pass.row_correct[row] = largest.place == label ? 1 : 0;
}

__global__ void __launch_bounds__(threads) mean(CrossEntropyPass pass) {
  double loss = 0, correct = 0;
  for (std::int64_t row = threadIdx.x; row < pass.rows; row += threads) {
    loss += pass.row_losses[row];
    correct += pass.row_correct[row];
  }
  loss = sum_of(loss);
  correct = sum_of(correct);
  if (threadIdx.x > 0) return;
  *pass.loss = static_cast<float>(loss / static_cast<double>(pass.rows));
  *pass.correct = static_cast<float>(correct);
}

}  // namespace

cudaError_t launch(CrossEntropyPass const& pass, cudaStream_t stream) {
  with_type(pass.type, [&](auto zero) {
    rows<decltype(zero)><<<static_cast<unsigned>(pass.rows), threads, 0, stream>>>(pass);
  });
  mean<<<1, threads, 0, stream>>>(pass);
  return cudaGetLastError();
}

}  // namespace stratagem::gpu
