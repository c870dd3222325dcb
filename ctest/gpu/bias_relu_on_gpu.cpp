#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "gpu/device.hpp"
#include "gpu/layers/bias_relu.hpp"

// The kernels do what the host does, with the same bits.
namespace stratagem::gpu {
namespace {

constexpr Device device{DeviceKind::cuda, 0};

/// Without a generator: the same everywhere.
at::Tensor values(std::int64_t rows, std::int64_t channels, double rate, at::ScalarType type) {
  return at::arange(rows * channels, at::kDouble).mul_(rate).sin_().view({rows, channels}).to(type);
}

/// Forward and backward, where `on` is. Results are on the host.
std::vector<at::Tensor> run(Maps const& maps, at::ScalarType type, Device const& on) {
  auto const there = [&](std::int64_t rows, double rate) {
    return values(rows, maps.channels, rate, type).clone().to(on.torch());
  };
  auto const y = there(maps.rows, 0.37), of_y = there(maps.rows, 0.77), bias = there(1, 0.3);
  auto const of_x = at::empty_like(y), of_bias = at::empty_like(bias);
  auto const scratch = at::empty({scratch_of(maps)}, y.options().dtype(at::kFloat));
  bias_relu(BiasForward{maps, y.data_ptr(), bias.data_ptr()}, on);
  bias_relu(BiasBackward{maps, y.data_ptr(), of_y.data_ptr(), of_x.data_ptr(), of_bias.data_ptr(),
                         scratch.data_ptr<float>()},
            on);
  return {y.cpu(), of_x.cpu(), of_bias.cpu()};
}

TEST(BiasReluOnGpu, HasTheBitsOfTheHost) {
  if (availability().count == 0) GTEST_SKIP() << "needs a GPU";
  select(device);
  for (auto const& [type, torch_type] : {std::pair{Element::fp32, at::kFloat},
                                         {Element::bf16, at::kBFloat16},
                                         {Element::fp16, at::kHalf}})
    for (auto const& [rows, channels] : {std::pair<std::int64_t, std::int64_t>{2, 4},
                                         {512, 512},
                                         {2048, 20},
                                         {2049, 8},
                                         {131'072, 64},
                                         {100'003, 36}}) {
      Maps const maps{rows, channels, type};
      auto const host = run(maps, torch_type, {}), gpu = run(maps, torch_type, device);
      for (std::size_t i = 0; i < host.size(); ++i)
        EXPECT_TRUE(host[i].equal(gpu[i]))
            << str(rows, " x ", channels, ", type ", int(type), ", result ", i);
    }
}

}  // namespace
}  // namespace stratagem::gpu
