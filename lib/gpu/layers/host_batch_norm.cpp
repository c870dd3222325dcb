#include "gpu/layers/batch_norm.hpp"
#include "gpu/layers/batch_norm_rule.hpp"
#include "gpu/layers/host_column_sums.hpp"
#include "gpu/layers/host_types.hpp"

namespace stratagem::gpu {
namespace {

template <class T>
void forward(NormForward const& pass) {
  auto const [rows, channels, _] = pass.maps;
  ColumnSums const order(pass.maps);
  auto const* x = static_cast<T const*>(pass.x);
  auto const* added = static_cast<T const*>(pass.added);
  auto* y = static_cast<T*>(pass.y);
  for (std::int64_t c = 0; c < channels; ++c) {
    auto const value = [&, n = channels](std::int64_t row) {
      return static_cast<float>(x[row * n + c]);
    };
    float const first = value(0);
    auto const sums = sum_of(order, rows, [&](std::int64_t row) -> Sums {
      float const offset = value(row) - first;
      return {offset, offset * offset};
    });
    auto const moments = moments_of(first, sums.first, sums.second, rows);
    pass.mean[c] = moments.mean;
    pass.inverse_deviation[c] = inverse_deviation_of(moments.variance, pass.eps);
    pass.running_mean[c] = moved(pass.running_mean[c], moments.mean, pass.momentum);
    pass.running_var[c] =
        moved(pass.running_var[c], unbiased(moments.variance, rows), pass.momentum);
    ChannelMap const map{moments.mean, pass.inverse_deviation[c] * pass.weight[c], pass.bias[c]};
    for (std::int64_t row = 0; row < rows; ++row) {
      float z = map(value(row));
      if (added != nullptr) z += static_cast<float>(added[row * channels + c]);
      y[row * channels + c] = static_cast<T>(activated(pass.activation, z));
    }
  }
}

template <class T>
void backward(NormBackward const& pass) {
  auto const [rows, channels, _] = pass.maps;
  ColumnSums const order(pass.maps);
  auto const* x = static_cast<T const*>(pass.x);
  auto const* y = static_cast<T const*>(pass.y);
  auto const* of_y = static_cast<T const*>(pass.of_y);
  auto* of_added = static_cast<T*>(pass.of_added);
  auto const count = static_cast<float>(rows);
  for (std::int64_t c = 0; c < channels; ++c) {
    float const scale = pass.inverse_deviation[c] * pass.weight[c];
    ChannelMap const map{pass.mean[c], scale, pass.bias[c]};
    ChannelGradient of_value{pass.mean[c], pass.inverse_deviation[c], scale, 0, 0};
    auto const of_map = [&, n = channels](std::int64_t row) {
      auto const i = row * n + c;
      if (pass.activation == Activation::none) return static_cast<float>(of_y[i]);
      float const z = of_added != nullptr ? static_cast<float>(y[i]) : map(x[i]);
      return gradient_before(pass.activation, z, of_y[i]);
    };
    auto const sums = sum_of(order, rows, [&, n = channels](std::int64_t row) -> Sums {
      float const gradient = of_map(row);
      if (of_added != nullptr) of_added[row * n + c] = static_cast<T>(gradient);
      return {gradient, gradient * of_value.normalised(static_cast<float>(x[row * n + c]))};
    });
    pass.of_bias[c] = sums.first;
    pass.of_weight[c] = sums.second;
    of_value.mean_gradient = sums.first / count;
    of_value.mean_product = sums.second / count;
    for (std::int64_t row = 0; row < rows; ++row) {
      auto const i = row * channels + c;
      static_cast<T*>(pass.of_x)[i] =
          static_cast<T>(of_value(static_cast<float>(x[i]), of_map(row)));
    }
  }
}

}  // namespace

void batch_norm_on_host(NormForward const& pass) {
  with_type(pass.maps.type, [&](auto zero) { forward<decltype(zero)>(pass); });
}

void batch_norm_on_host(NormBackward const& pass) {
  with_type(pass.maps.type, [&](auto zero) { backward<decltype(zero)>(pass); });
}

}  // namespace stratagem::gpu
