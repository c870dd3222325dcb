#include <array>

#include "gpu/layers/batch_norm_rule.hpp"
#include "gpu/layers/host_column_sums.hpp"
#include "gpu/layers/host_types.hpp"
#include "gpu/layers/layer_norm.hpp"

namespace stratagem::gpu {
namespace {

/// Over the columns of a row, in the order of a warp: each thread adds every 32nd vector, then
/// threads are added in a tree. `term(column)`.
template <class Term>
Sums sum_of_row(std::int64_t channels, Term const& term) {
  std::array<Sums, ColumnSums::warp> threads{};
  for (std::int64_t c = 0; c < channels; ++c)
    threads[static_cast<std::size_t>(c / ColumnSums::width % ColumnSums::warp)].add(term(c));
  for (std::size_t apart = ColumnSums::warp / 2; apart > 0; apart /= 2)
    for (std::size_t i = 0; i < apart; ++i) threads[i].add(threads[i + apart]);
  return threads[0];
}

template <class T>
void forward(LayerNormForward const& pass) {
  auto const [rows, channels, _] = pass.maps;
  for (std::int64_t row = 0; row < rows; ++row) {
    auto const* x = static_cast<T const*>(pass.x) + row * channels;
    auto* y = static_cast<T*>(pass.y) + row * channels;
    float const first = x[0];
    auto const sums = sum_of_row(channels, [&](std::int64_t c) -> Sums {
      float const offset = static_cast<float>(x[c]) - first;
      return {offset, offset * offset};
    });
    auto const moments = moments_of(first, sums.first, sums.second, channels);
    float const inverse = inverse_deviation_of(moments.variance, pass.eps);
    pass.mean[row] = moments.mean;
    pass.inverse_deviation[row] = inverse;
    for (std::int64_t c = 0; c < channels; ++c) {
      float const normalised = (x[c] - moments.mean) * inverse;
      y[c] = static_cast<T>(normalised * pass.weight[c] + pass.bias[c]);
    }
  }
}

template <class T>
void backward(LayerNormBackward const& pass) {
  auto const [rows, channels, _] = pass.maps;
  auto const normalised = [&, n = channels](std::int64_t row, std::int64_t c) {
    float const x = static_cast<T const*>(pass.x)[row * n + c];
    return (x - pass.mean[row]) * pass.inverse_deviation[row];
  };
  auto const gradient = [&, n = channels](std::int64_t row, std::int64_t c) -> float {
    return static_cast<T const*>(pass.of_y)[row * n + c];
  };
  auto const count = static_cast<float>(channels);
  for (std::int64_t row = 0; row < rows; ++row) {
    auto const sums = sum_of_row(channels, [&](std::int64_t c) -> Sums {
      float const weighted = gradient(row, c) * pass.weight[c];
      return {weighted, weighted * normalised(row, c)};
    });
    ChannelGradient const of_value{pass.mean[row], pass.inverse_deviation[row],
                                   pass.inverse_deviation[row], sums.first / count,
                                   sums.second / count};
    for (std::int64_t c = 0; c < channels; ++c) {
      auto const i = row * channels + c;
      float const weighted = gradient(row, c) * pass.weight[c];
      static_cast<T*>(pass.of_x)[i] =
          static_cast<T>(of_value(static_cast<T const*>(pass.x)[i], weighted));
    }
  }
  ColumnSums const order(pass.maps);
  for (std::int64_t c = 0; c < channels; ++c) {
    auto const sums = sum_of(order, rows, [&](std::int64_t row) -> Sums {
      return {gradient(row, c), gradient(row, c) * normalised(row, c)};
    });
    pass.of_bias[c] = sums.first;
    pass.of_weight[c] = sums.second;
  }
}

}  // namespace

void layer_norm_on_host(LayerNormForward const& pass) {
  with_type(pass.maps.type, [&](auto zero) { forward<decltype(zero)>(pass); });
}

void layer_norm_on_host(LayerNormBackward const& pass) {
  with_type(pass.maps.type, [&](auto zero) { backward<decltype(zero)>(pass); });
}

}  // namespace stratagem::gpu
