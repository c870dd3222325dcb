#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "gpu/device.hpp"
#include "gpu/layers/batch_norm.hpp"

// The kernels do what the host does, with the same bits.
namespace stratagem::gpu {
namespace {

constexpr Device device{DeviceKind::cuda, 0};

struct Case {
  std::int64_t rows, channels;
  Activation activation;
  bool added = false;
};

Case const cases[]{
    {2, 4, Activation::none},
    {2, 2048, Activation::relu, true},
    {512, 1024, Activation::silu},
    {2048, 20, Activation::relu},
    {2048, 512, Activation::none, true},
    {2049, 8, Activation::relu, true},
    {8192, 64, Activation::relu},
    {32768, 96, Activation::silu},
    {100'003, 36, Activation::relu, true},
    {5000, 2304, Activation::silu},
};

at::ScalarType torch_type(Element element) {
  return element == Element::fp32   ? at::kFloat
         : element == Element::bf16 ? at::kBFloat16
                                    : at::kHalf;
}

/// Without a generator: the same everywhere.
at::Tensor values(std::int64_t rows, std::int64_t channels, double rate, at::ScalarType type) {
  return at::arange(rows * channels, at::kDouble).mul_(rate).sin_().view({rows, channels}).to(type);
}

/// Forward and backward, where `on` is. Results are on the host.
std::vector<at::Tensor> run(Case const& it, Element type, Device const& on) {
  auto const narrow = torch_type(type);
  auto const there = [&](at::Tensor const& tensor) { return tensor.clone().to(on.torch()); };
  auto const maps = [&](double rate) { return there(values(it.rows, it.channels, rate, narrow)); };
  auto const of_channels = [&](double rate) {
    return there(values(1, it.channels, rate, at::kFloat).abs_());
  };
  auto const x = maps(0.37), added = maps(0.11), of_y = maps(0.77);
  auto const weight = of_channels(0.3), bias = of_channels(0.21).neg_();
  auto const running_mean = of_channels(0.5), running_var = of_channels(0.6);
  auto const y = at::empty_like(x), of_x = at::empty_like(x), of_added = at::empty_like(x);
  auto const mean = at::empty_like(weight), inverse_deviation = at::empty_like(weight);
  auto const of_weight = at::empty_like(weight), of_bias = at::empty_like(weight);
  Maps const shape{it.rows, it.channels, type};
  auto const scratch = at::empty({scratch_of(shape)}, weight.options());
  auto const floats = [](at::Tensor const& tensor) { return tensor.data_ptr<float>(); };
  batch_norm(NormForward{shape, x.data_ptr(), it.added ? added.data_ptr() : nullptr, y.data_ptr(),
                         floats(weight), floats(bias), floats(running_mean), floats(running_var),
                         floats(mean), floats(inverse_deviation), floats(scratch), 1e-5F, 0.1F,
                         it.activation},
             on);
  batch_norm(NormBackward{shape, x.data_ptr(), y.data_ptr(), of_y.data_ptr(), of_x.data_ptr(),
                          it.added ? of_added.data_ptr() : nullptr, floats(weight), floats(bias),
                          floats(mean), floats(inverse_deviation), floats(of_weight),
                          floats(of_bias), floats(scratch), it.activation},
             on);
  std::vector<at::Tensor> results{y,    running_mean, running_var, mean, inverse_deviation,
                                  of_x, of_weight,    of_bias};
  if (it.added) results.push_back(of_added);
  for (auto& result : results) result = result.cpu();
  return results;
}

TEST(BatchNormOnGpu, HasTheBitsOfTheHost) {
  if (availability().count == 0) GTEST_SKIP() << "needs a GPU";
  select(device);
  for (auto const type : {Element::fp32, Element::bf16, Element::fp16})
    for (auto const& it : cases) {
      SCOPED_TRACE(str(it.rows, " x ", it.channels, ", activation ", int(it.activation), ", type ",
                       int(type)));
      auto const host = run(it, type, {}), gpu = run(it, type, device);
      for (std::size_t i = 0; i < host.size(); ++i)
        EXPECT_TRUE(host[i].equal(gpu[i]))
            << "result " << i << ": " << host[i].ne(gpu[i]).sum().item<std::int64_t>() << " differ";
    }
}

}  // namespace
}  // namespace stratagem::gpu
