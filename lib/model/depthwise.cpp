#include "model/depthwise.hpp"

#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/simd.hpp"

namespace stratagem {
namespace {

/// sum += a b, element by element. Function multiversioning applies to plain functions.
STRATAGEM_SIMD_CLONES void add_product(float* sum, float const* a, float const* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = sum[i] + a[i] * b[i];
}
STRATAGEM_SIMD_CLONES void add_product(double* sum, double const* a, double const* b,
                                       std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = sum[i] + a[i] * b[i];
}

/// One tap that meets one pixel: first elements in the numbers of a sample.
struct Meeting {
  std::int64_t x, y, tap;
};

std::vector<Meeting> meetings_of(TapPlan const& plan) {
  std::vector<Meeting> found;
  for (auto const& run : plan.runs())
    for (std::int64_t at = 0; at < run.width; at += plan.channels)
      found.push_back({run.x + at, run.y, run.weight + at / plan.channels});
  return found;
}

/// [taps, channels], so that the channels of a tap lie together.
at::Tensor by_tap(at::Tensor const& weight) {
  return weight.reshape({weight.size(0), -1}).t().contiguous();
}

template <class T>
void forward(TapPlan const& plan, T const* x, T const* weight, T* y) {
  auto const meetings = meetings_of(plan);
  auto const channels = plan.channels;
  at::parallel_for(0, plan.samples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n)
      for (auto const& [from, to, tap] : meetings)
        add_product(y + n * plan.out_pixels() * channels + to,
                    x + n * plan.in_pixels() * channels + from, weight + tap * channels, channels);
  });
}

template <class T>
void backward_x(TapPlan const& plan, T const* weight, T const* y, T* x) {
  auto const meetings = meetings_of(plan);
  auto const channels = plan.channels;
  at::parallel_for(0, plan.samples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n)
      for (auto const& [to, from, tap] : meetings)
        add_product(x + n * plan.in_pixels() * channels + to,
                    y + n * plan.out_pixels() * channels + from, weight + tap * channels, channels);
  });
}

/// Each thread has its own channels, so that samples are added in their order.
template <class T>
void backward_weight(TapPlan const& plan, T const* x, T const* y, T* weight) {
  constexpr std::int64_t block = 128;  // channels
  auto const meetings = meetings_of(plan);
  auto const channels = plan.channels;
  auto const blocks = (channels + block - 1) / block;
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto number = begin; number < end; ++number) {
      auto const first = number * block;
      auto const count = std::min(block, channels - first);
      for (std::int64_t n = 0; n < plan.samples; ++n)
        for (auto const& [of_x, of_y, tap] : meetings)
          add_product(weight + tap * channels + first,
                      x + n * plan.in_pixels() * channels + of_x + first,
                      y + n * plan.out_pixels() * channels + of_y + first, count);
    }
  });
}

template <class Body>
void by_type(at::Tensor const& x, Body body) {
  if (x.scalar_type() == at::kFloat)
    body(float{});
  else
    body(double{});
}

}  // namespace

void depthwise(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
               at::Tensor const& y) {
  auto const taps = by_tap(weight);
  by_type(x, [&]<class T>(T) {
    forward(plan, x.const_data_ptr<T>(), taps.const_data_ptr<T>(), y.data_ptr<T>());
  });
}

void depthwise_backward(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
                        at::Tensor const& y, at::Tensor const& into_x,
                        at::Tensor const& into_weight) {
  auto const taps = by_tap(weight);
  by_type(x, [&]<class T>(T) {
    if (into_x.defined())
      backward_x(plan, taps.const_data_ptr<T>(), y.const_data_ptr<T>(), into_x.data_ptr<T>());
    if (!into_weight.defined()) return;
    auto const sums = at::zeros_like(taps);
    backward_weight(plan, x.const_data_ptr<T>(), y.const_data_ptr<T>(), sums.data_ptr<T>());
    into_weight.copy_(sums.t().view(into_weight.sizes()));
  });
}

}  // namespace stratagem
