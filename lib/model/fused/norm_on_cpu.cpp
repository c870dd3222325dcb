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

[[gnu::always_inline]] inline void add_moments(std::int64_t channels, StridedRows of_x, Rows rows,
                                               float* __restrict sums) {
  float* __restrict squares = sums + channels;
  float const* first = of_x.first;  // of each channel, see moments_of
  auto row = rows.begin;
  for (; row + 4 <= rows.end; row += 4) {
    float const *a = of_x.row(row), *b = of_x.row(row + 1);
    float const *c = of_x.row(row + 2), *d = of_x.row(row + 3);
    for (std::int64_t i = 0; i < channels; ++i) {
      float const of_a = a[i] - first[i], of_b = b[i] - first[i];
      float const of_c = c[i] - first[i], of_d = d[i] - first[i];
      sums[i] += (of_a + of_b) + (of_c + of_d);
      squares[i] += (of_a * of_a + of_b * of_b) + (of_c * of_c + of_d * of_d);
    }
  }
  for (; row < rows.end; ++row) {
    float const* x = of_x.row(row);
    for (std::int64_t i = 0; i < channels; ++i) {
      float const offset = x[i] - first[i];
      sums[i] += offset;
      squares[i] += offset * offset;
    }
  }
}

template <Activation activation>
[[gnu::always_inline]] inline void write_results(gpu::NormForward const& pass, StridedRows of_x,
                                                 float const* scale, Rows rows) {
  auto const channels = pass.maps.channels;
  float const *mean = pass.mean, *bias = pass.bias;
  for (auto row = rows.begin; row < rows.end; ++row) {
    float const* x = of_x.row(row);
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
[[gnu::always_inline]] inline void add_gradients(gpu::NormBackward const& pass, StridedRows of_x,
                                                 float const* scale, Rows rows,
                                                 float* __restrict sums) {
  auto const channels = pass.maps.channels;
  float const *mean = pass.mean, *inverse_deviation = pass.inverse_deviation, *bias = pass.bias;
  float* __restrict products = sums + channels;
  for (auto row = rows.begin; row < rows.end; ++row) {
    float const* x = of_x.row(row);
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
[[gnu::always_inline]] inline void write_gradients(gpu::NormBackward const& pass, StridedRows of_x,
                                                   StridedRows further,
                                                   GradientArrays const& channel, Rows rows) {
  auto const channels = pass.maps.channels;
  float const *mean = pass.mean, *inverse_deviation = pass.inverse_deviation, *bias = pass.bias;
  auto const [scale, mean_gradient, mean_product] = channel;
  auto const gradient_of = [&](std::int64_t i, float x, float gradient) {
    return ChannelGradient{mean[i], inverse_deviation[i], scale[i], mean_gradient[i],
                           mean_product[i]}(x, gradient);
  };
  auto const before = [&](std::int64_t i, float x, float of_y) {
    return gradient_before(activation, ChannelMap{mean[i], scale[i], bias[i]}(x), of_y);
  };
  for (auto row = rows.begin; row < rows.end; ++row) {
    float const* x = of_x.row(row);
    auto* __restrict result = static_cast<float*>(pass.of_x) + row * channels;
    if (pass.of_added != nullptr) {  // which has the gradient before the activation
      auto const* gradient = static_cast<float const*>(pass.of_added) + row * channels;
      for (std::int64_t i = 0; i < channels; ++i) result[i] = gradient_of(i, x[i], gradient[i]);
      continue;
    }
    auto const* of_y = static_cast<float const*>(pass.of_y) + row * channels;
    if (further.first != nullptr) {
      float const* more = further.row(row);
      for (std::int64_t i = 0; i < channels; ++i)
        result[i] = gradient_of(i, x[i], before(i, x[i], of_y[i])) + more[i];
    } else {
      for (std::int64_t i = 0; i < channels; ++i)
        result[i] = gradient_of(i, x[i], before(i, x[i], of_y[i]));
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

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void add_up(std::int64_t channels, StridedRows x, Rows rows,
                                                   float* sums) {
  add_moments(channels, x, rows, sums);
}

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void results(gpu::NormForward const& pass, StridedRows x,
                                                    float const* scale, Rows rows) {
  with_activation(pass.activation, [&]<Activation a>() { write_results<a>(pass, x, scale, rows); });
}

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void gradient_sums(gpu::NormBackward const& pass,
                                                          StridedRows x, float const* scale,
                                                          Rows rows, float* sums) {
  with_activation(pass.activation,
                  [&]<Activation a>() { add_gradients<a>(pass, x, scale, rows, sums); });
}

STRATAGEM_SIMD_CLONES [[gnu::flatten]] void gradients(gpu::NormBackward const& pass, StridedRows x,
                                                      StridedRows further,
                                                      GradientArrays const& channel, Rows rows) {
  with_activation(pass.activation,
                  [&]<Activation a>() { write_gradients<a>(pass, x, further, channel, rows); });
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

/// The batch's statistics from its moments, and what they make of the running ones.
void take_statistics(gpu::NormForward const& pass, ChannelMoments moments) {
  for (std::int64_t c = 0; c < pass.maps.channels; ++c) {
    auto const mean = moments.mean[c], variance = moments.variance[c];
    pass.mean[c] = mean;
    pass.inverse_deviation[c] = gpu::inverse_deviation_of(variance, pass.eps);
    pass.running_mean[c] = gpu::moved(pass.running_mean[c], mean, pass.momentum);
    pass.running_var[c] =
        gpu::moved(pass.running_var[c], gpu::unbiased(variance, pass.maps.rows), pass.momentum);
  }
}

}  // namespace

bool has_norm_on_cpu(gpu::Maps const& maps) {
  return maps.type == gpu::Element::fp32;
}

void moments_on_cpu(gpu::Maps const& maps, StridedRows x, ChannelMoments moments) {
  auto const sums =
      sums_of(maps, [&](Rows of_slice, float* into) { add_up(maps.channels, x, of_slice, into); });
  for (std::int64_t c = 0; c < maps.channels; ++c) {
    auto const sum = sums[static_cast<std::size_t>(c)];
    auto const squares = sums[static_cast<std::size_t>(maps.channels + c)];
    auto const of = gpu::moments_of(x.first[c], sum, squares, maps.rows);
    moments.mean[c] = of.mean;
    moments.variance[c] = of.variance;
  }
}

void norm_on_cpu(gpu::NormForward const& pass, std::int64_t x_stride, ChannelMoments known) {
  expects(has_norm_on_cpu(pass.maps), "maps of fp32");
  StridedRows const x{static_cast<float const*>(pass.x), x_stride};
  std::vector<float> variance;
  if (known.mean == nullptr) {
    variance.resize(static_cast<std::size_t>(pass.maps.channels));
    known = {pass.mean, variance.data()};
    moments_on_cpu(pass.maps, x, known);
  }
  take_statistics(pass, known);
  auto const scale = scales(pass.weight, pass.inverse_deviation, pass.maps.channels);
  for_slices(pass.maps, [&](std::int64_t, Rows rows) { results(pass, x, scale.data(), rows); });
}

void norm_on_cpu(gpu::NormBackward const& pass, std::int64_t x_stride, StridedRows further) {
  expects(has_norm_on_cpu(pass.maps), "maps of fp32");
  expects(pass.of_added == nullptr || further.first == nullptr,
          "a further gradient or an addition");
  auto const [rows, channels, _] = pass.maps;
  StridedRows const x{static_cast<float const*>(pass.x), x_stride};
  auto const scale = scales(pass.weight, pass.inverse_deviation, channels);
  auto sums = sums_of(pass.maps, [&](Rows of_slice, float* into) {
    gradient_sums(pass, x, scale.data(), of_slice, into);
  });
  std::copy_n(sums.data(), channels, pass.of_bias);
  std::copy_n(sums.data() + channels, channels, pass.of_weight);
  for (auto& sum : sums) sum /= static_cast<float>(rows);
  GradientArrays const channel{scale.data(), sums.data(), sums.data() + channels};
  for_slices(pass.maps,
             [&](std::int64_t, Rows of_slice) { gradients(pass, x, further, channel, of_slice); });
}

}  // namespace stratagem
