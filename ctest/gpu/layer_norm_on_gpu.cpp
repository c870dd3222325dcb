#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "gpu/device.hpp"
#include "gpu/layers/layer_norm.hpp"

// The kernels do what the host does, with the same bits.
namespace stratagem::gpu {
namespace {

constexpr Device device{DeviceKind::cuda, 0};

/// Without a generator: the same everywhere.
at::Tensor values(std::int64_t rows, std::int64_t channels, double rate, at::ScalarType type) {
  return at::arange(rows * channels, at::kDouble).mul_(rate).sin_().view({rows, channels}).to(type);
}

/// Forward and backward, where `on` is. Results are on the host. The parameters begin at an element
/// that is not the first of a vector, if told.
std::vector<at::Tensor> run(Maps const& maps, at::ScalarType type, bool apart, Device const& on) {
  auto const there = [&](double rate) {
    return values(maps.rows, maps.channels, rate, type).clone().to(on.torch());
  };
  auto const parameter = [&](double rate) {
    auto const whole = values(1, maps.channels + 1, rate, at::kFloat).flatten().clone();
    return whole.to(on.torch()).narrow(0, apart ? 1 : 0, maps.channels);
  };
  auto const x = there(0.37), of_y = there(0.77), y = at::empty_like(x), of_x = at::empty_like(x);
  auto const weight = parameter(0.3), bias = parameter(0.21);
  auto const of_weight = at::empty_like(weight), of_bias = at::empty_like(weight);
  auto const mean = at::empty({maps.rows}, weight.options()), deviation = at::empty_like(mean);
  auto const scratch = at::empty({scratch_of(maps)}, weight.options());
  auto const floats = [](at::Tensor const& tensor) { return tensor.data_ptr<float>(); };
  layer_norm(LayerNormForward{maps, x.data_ptr(), y.data_ptr(), floats(weight), floats(bias),
                              floats(mean), floats(deviation), 1e-5F},
             on);
  layer_norm(LayerNormBackward{maps, x.data_ptr(), of_y.data_ptr(), of_x.data_ptr(), floats(weight),
                               floats(mean), floats(deviation), floats(of_weight), floats(of_bias),
                               floats(scratch)},
             on);
  return {y.cpu(), mean.cpu(), deviation.cpu(), of_x.cpu(), of_weight.cpu(), of_bias.cpu()};
}

TEST(LayerNormOnGpu, HasTheBitsOfTheHost) {
  if (availability().count == 0) GTEST_SKIP() << "needs a GPU";
  select(device);
  for (auto const& [type, torch_type] : {std::pair{Element::fp32, at::kFloat},
                                         {Element::bf16, at::kBFloat16},
                                         {Element::fp16, at::kHalf}})
    for (auto const& [rows, channels] :
         {std::pair<std::int64_t, std::int64_t>{2, 4}, {1001, 768}, {9000, 36}, {4096, 1536}})
      for (bool const apart : {false, true}) {
        Maps const maps{rows, channels, type};
        auto const host = run(maps, torch_type, apart, {});
        auto const gpu = run(maps, torch_type, apart, device);
        for (std::size_t i = 0; i < host.size(); ++i)
          EXPECT_TRUE(host[i].equal(gpu[i]))
              << str(rows, " x ", channels, ", type ", int(type), ", result ", i);
      }
}

}  // namespace
}  // namespace stratagem::gpu
