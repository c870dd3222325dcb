#include "gpu/layers/activation.hpp"
#include "gpu/layers/bias_relu.hpp"
#include "gpu/layers/host_column_sums.hpp"
#include "gpu/layers/host_types.hpp"

namespace stratagem::gpu {
namespace {

template <class T>
void forward(BiasForward const& pass) {
  auto const channels = pass.maps.channels;
  auto* y = static_cast<T*>(pass.y);
  auto const* bias = static_cast<T const*>(pass.bias);
  for (std::int64_t i = 0; i < pass.maps.rows * channels; ++i) {
    float const sum = static_cast<float>(y[i]) + static_cast<float>(bias[i % channels]);
    y[i] = static_cast<T>(activated(Activation::relu, sum));
  }
}

template <class T>
void backward(BiasBackward const& pass) {
  auto const [rows, channels, _] = pass.maps;
  ColumnSums const order(pass.maps);
  auto const* y = static_cast<T const*>(pass.y);
  auto const* of_y = static_cast<T const*>(pass.of_y);
  auto* of_x = static_cast<T*>(pass.of_x);
  for (std::int64_t c = 0; c < channels; ++c) {
    auto const sums = sum_of(order, rows, [&, n = channels](std::int64_t row) -> Sums {
      auto const i = row * n + c;
      float const gradient = gradient_before(Activation::relu, y[i], of_y[i]);
      of_x[i] = static_cast<T>(gradient);
      return {gradient, 0};
    });
    static_cast<T*>(pass.of_bias)[c] = static_cast<T>(sums.first);
  }
}

}  // namespace

void bias_relu_on_host(BiasForward const& pass) {
  with_type(pass.maps.type, [&](auto zero) { forward<decltype(zero)>(pass); });
}

void bias_relu_on_host(BiasBackward const& pass) {
  with_type(pass.maps.type, [&](auto zero) { backward<decltype(zero)>(pass); });
}

}  // namespace stratagem::gpu
