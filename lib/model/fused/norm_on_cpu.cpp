#include "model/fused/norm_on_cpu.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include <ATen/Parallel.h>

#include "base/arithmetic.hpp"
#include "base/contract.hpp"
#include "base/simd.hpp"
#include "gpu/layers/batch_norm_rule.hpp"

namespace stratagem {
namespace {

using gpu::ChannelGradient;
using gpu::ChannelMap;

constexpr std::int64_t rows_of_slice = 256;
constexpr std::int64_t least_elements = 1 << 15;  ///< of a thread

struct Rows {
  std::int64_t begin, end;
};

// Loops over rows of fp32 maps, in each over channels. `sums` holds two sums of each channel, all
// first ones before all second ones.

[[gnu::always_inline]] inline void add_moments(gpu::NormForward const& pass, float const* first,
                                               Rows rows, float* __restrict sums) {
  auto const channels = pass.maps.channels;
  float* __restrict squares = sums + channels;
  auto const* x = static_cast<float const*>(pass.x) + rows.begin * channels;
  auto row = rows.begin;
  for (; row + 4 <= rows.end; row += 4, x += 4 * channels) {
    float const *a = x, *b = a + channels, *c = b + channels, *d = c + channels;
    for (std::int64_t i = 0; i < channels; ++i) {
      float const of_a = a[i] - first[i], of_b = b[i] - first[i];
      float const of_c = c[i] - first[i], of_d = d[i] - first[i];
      sums[i] += (of_a + of_b) + (of_c + of_d);
      squares[i] += (of_a * of_a + of_b * of_b) + (of_c * of_c + of_d * of_d);
    }
  }
  for (; row < rows.end; ++row, x += channels)
    for (std::int64_t i = 0; i < channels; ++i) {
      float const of_x = x[i] - first[i];
      sums[i] += of_x;
      squares[i] += of_x * of_x;
    }
}

template <Activation activation>
[[gnu::always_inline]] inline void write_results(gpu::NormForward const& pass, float const* scale,
                                                 Rows rows) {
  auto const channels = pass.maps.channels;
  float const *mean = pass.mean, *bias = pass.bias;
  for (auto row = rows.begin; row < rows.end; ++row) {
    auto const* x = static_cast<float const*>(pass.x) + row * channels;
    auto* __restrict y = static_cast<float*>(pass.y) + row * channels;
    if (pass.added != nullptr) {
      auto const* added = static_cast<float const*>(pass.added) + row * channels;
      for (std::int64_t i = 0; i < channels; ++i)
        y[i] = activated(activation, ChannelMap{mean[i], scale[i], bias[i]}(x[i]) + added[i]);
    } else {
      for (std::int64_t i = 0; i < channels; ++i)
        y[i] = activated(activation, ChannelMap{mean[i], scale[i], bias[i]}(x[i]));
    }
  }
}

/// Of the gradient before the activation, and of its product with the normalised value.
template <Activation activation>
[[gnu::always_inline]] inline void add_gradients(gpu::NormBackward const& pass, float const* scale,
                                                 Rows rows, float* __restrict sums) {
  auto const channels = pass.maps.channels;
  float const *mean = pass.mean, *inverse_deviation = pass.inverse_deviation, *bias = pass.bias;
  float* __restrict products = sums + channels;
  for (auto row = rows.begin; row < rows.end; ++row) {
    auto const* x = static_cast<float const*>(pass.x) + row * channels;
    auto const* of_y = static_cast<float const*>(pass.of_y) + row * channels;
    if (pass.of_added != nullptr) {
      auto const* y = pass.y == nullptr ? of_y : static_cast<float const*>(pass.y) + row * channels;
      auto* __restrict of_added = static_cast<float*>(pass.of_added) + row * channels;
      for (std::int64_t i = 0; i < channels; ++i) {
        float const gradient = gradient_before(activation, y[i], of_y[i]);
        of_added[i] = gradient;
        sums[i] += gradient;
        products[i] += gradient * ChannelGradient{mean[i], inverse_deviation[i]}.normalised(x[i]);
      }
    } else {
      for (std::int64_t i = 0; i < channels; ++i) {
        float const z = ChannelMap{mean[i], scale[i], bias[i]}(x[i]);
        float const gradient = gradient_before(activation, z, of_y[i]);
        sums[i] += gradient;
        products[i] += gradient * ChannelGradient{mean[i], inverse_deviation[i]}.normalised(x[i]);
      }
    }
  }
}

/// Of channels, see ChannelGradient.
struct GradientArrays {
  float const *scale, *mean_gradient, *mean_product;
};

template <Activation activation>
[[gnu::always_inline]] inline void write_gradients(gpu::NormBackward const& pass,
                                                   GradientArrays const& channel, Rows rows) {
  auto const channels = pass.maps.channels;
  float const *mean = pass.mean, *inverse_deviation = pass.inverse_deviation, *bias = pass.bias;
  auto const [scale, mean_gradient, mean_product] = channel;
  for (auto row = rows.begin; row < rows.end; ++row) {
    auto const* x = static_cast<float const*>(pass.x) + row * channels;
    auto* __restrict of_x = static_cast<float*>(pass.of_x) + row * channels;
    if (pass.of_added != nullptr) {  // which has the gradient before the activation
      auto const* gradient = static_cast<float const*>(pass.of_added) + row * channels;
      for (std::int64_t i = 0; i < channels; ++i)
        of_x[i] = ChannelGradient{mean[i], inverse_deviation[i], scale[i], mean_gradient[i],
                                  mean_product[i]}(x[i], gradient[i]);
    } else {
      auto const* of_y = static_cast<float const*>(pass.of_y) + row * channels;
      for (std::int64_t i = 0; i < channels; ++i) {
        float const z = ChannelMap{mean[i], scale[i], bias[i]}(x[i]);
        float const gradient = gradient_before(activation, z, of_y[i]);
        of_x[i] = ChannelGradient{mean[i], inverse_deviation[i], scale[i], mean_gradient[i],
                                  mean_product[i]}(x[i], gradient);
      }
    }
  }
}

/// body<activation>().
template <class Body>
[[gnu::always_inline]] inline void with_activation(Activation activation, Body const& body) {
  switch (activation) {
    case Activation::none:
      return body.template operator()<Activation::none>();
    case Activation::relu:
      return body.template operator()<Activation::relu>();
    case Activation::silu:
      return body.template operator()<Activation::silu>();
  }
}

// Function multiversioning applies to plain functions, into which all is inlined.

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void moments(gpu::NormForward const& pass,
                                                    float const* first, Rows rows, float* sums) {
  add_moments(pass, first, rows, sums);
}

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void results(gpu::NormForward const& pass,
                                                    float const* scale, Rows rows) {
  with_activation(pass.activation, [&]<Activation a>() { write_results<a>(pass, scale, rows); });
}

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void gradient_sums(gpu::NormBackward const& pass,
                                                          float const* scale, Rows rows,
                                                          float* sums) {
  with_activation(pass.activation,
                  [&]<Activation a>() { add_gradients<a>(pass, scale, rows, sums); });
}

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void gradients(gpu::NormBackward const& pass,
                                                      GradientArrays const& channel, Rows rows) {
  with_activation(pass.activation,
                  [&]<Activation a>() { write_gradients<a>(pass, channel, rows); });
}

/// body(slice, rows) for all slices, by LibTorch's threads.
template <class Body>
void for_slices(gpu::Maps const& maps, Body const& body) {
  auto const grain = ceil_div(least_elements, rows_of_slice * maps.channels);
  at::parallel_for(0, ceil_div(maps.rows, rows_of_slice), grain,
                   [&](std::int64_t from, std::int64_t to) {
                     for (auto slice = from; slice < to; ++slice) {
                       auto const begin = slice * rows_of_slice;
                       body(slice, Rows{begin, std::min(begin + rows_of_slice, maps.rows)});
                     }
                   });
}

/// Two sums of each channel; add(rows, sums) adds to them what these rows have.
template <class Add>
std::vector<float> sums_of(gpu::Maps const& maps, Add const& add) {
  auto const size = static_cast<std::size_t>(2 * maps.channels);
  auto const slices = static_cast<std::size_t>(ceil_div(maps.rows, rows_of_slice));
  std::vector<float> of_slices(slices * size);
  for_slices(maps, [&](std::int64_t slice, Rows rows) {
    add(rows, of_slices.data() + static_cast<std::size_t>(slice) * size);
  });
  std::vector<double> sums(size);
  for (std::size_t slice = 0; slice < slices; ++slice)
    for (std::size_t i = 0; i < size; ++i)
      sums[i] += static_cast<double>(of_slices[slice * size + i]);
  return {sums.begin(), sums.end()};
}

std::vector<float> scales(float const* weight, float const* inverse_deviation,
                          std::int64_t channels) {
  std::vector<float> scale(static_cast<std::size_t>(channels));
  std::transform(weight, weight + channels, inverse_deviation, scale.begin(), std::multiplies<>());
  return scale;
}

/// The batch's statistics, and what they make of the running ones.
void take_statistics(gpu::NormForward const& pass) {
  auto const [rows, channels, _] = pass.maps;
  auto const* first = static_cast<float const*>(pass.x);  // of each channel, see moments_of
  auto const sums =
      sums_of(pass.maps, [&](Rows of_slice, float* into) { moments(pass, first, of_slice, into); });
  for (std::int64_t c = 0; c < channels; ++c) {
    auto const i = static_cast<std::size_t>(c), n = static_cast<std::size_t>(channels);
    auto const of = gpu::moments_of(first[i], sums[i], sums[n + i], rows, pass.eps);
    pass.mean[c] = of.mean;
    pass.inverse_deviation[c] = of.inverse_deviation;
    pass.running_mean[c] = gpu::moved(pass.running_mean[c], of.mean, pass.momentum);
    pass.running_var[c] =
        gpu::moved(pass.running_var[c], gpu::unbiased(of.variance, rows), pass.momentum);
  }
}

}  // namespace

bool has_norm_on_cpu(gpu::Maps const& maps) {
  return maps.type == gpu::Element::fp32;
}

void norm_on_cpu(gpu::NormForward const& pass) {
  expects(has_norm_on_cpu(pass.maps), "maps of fp32");
  take_statistics(pass);
  auto const scale = scales(pass.weight, pass.inverse_deviation, pass.maps.channels);
  for_slices(pass.maps, [&](std::int64_t, Rows rows) { results(pass, scale.data(), rows); });
}

void norm_on_cpu(gpu::NormBackward const& pass) {
  expects(has_norm_on_cpu(pass.maps), "maps of fp32");
  auto const [rows, channels, _] = pass.maps;
  auto const scale = scales(pass.weight, pass.inverse_deviation, channels);
  auto sums = sums_of(pass.maps, [&](Rows of_slice, float* into) {
    gradient_sums(pass, scale.data(), of_slice, into);
  });
  std::copy_n(sums.data(), channels, pass.of_bias);
  std::copy_n(sums.data() + channels, channels, pass.of_weight);
  for (auto& sum : sums) sum /= static_cast<float>(rows);
  GradientArrays const channel{scale.data(), sums.data(), sums.data() + channels};
  for_slices(pass.maps, [&](std::int64_t, Rows of_slice) { gradients(pass, channel, of_slice); });
}

}  // namespace stratagem
