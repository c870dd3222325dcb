#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "gpu/device.hpp"
#include "gpu/layers/cross_entropy.hpp"

// The kernels do what the host does, with the same bits.
namespace stratagem::gpu {
namespace {

constexpr Device device{DeviceKind::cuda, 0};

/// Loss, correct and gradient, computed where `on` is; on the host.
std::vector<at::Tensor> run(at::Tensor const& given, Element type, Device const& on) {
  auto const logits = given.clone().to(on.torch());
  auto const labels =
      at::arange(given.size(0), at::kLong).mul_(7).remainder_(given.size(1)).to(on.torch());
  auto const gradient = at::empty_like(logits);
  auto const of_rows = at::empty({2, given.size(0)}, logits.options().dtype(at::kFloat));
  auto const results = at::empty({2}, of_rows.options());
  cross_entropy(
      {given.size(0), given.size(1), type, logits.data_ptr(), labels.data_ptr<std::int64_t>(),
       gradient.data_ptr(), 1024, of_rows[0].data_ptr<float>(), of_rows[1].data_ptr<float>(),
       results[0].data_ptr<float>(), results[1].data_ptr<float>()},
      on);
  return {results.cpu(), gradient.cpu()};
}

TEST(CrossEntropyOnGpu, HasTheBitsOfTheHost) {
  if (availability().count == 0) GTEST_SKIP() << "needs a GPU";
  select(device);
  for (auto const& [type, torch_type] : {std::pair{Element::fp32, at::kFloat},
                                         {Element::bf16, at::kBFloat16},
                                         {Element::fp16, at::kHalf}})
    for (auto const& [rows, classes] :
         {std::pair<std::int64_t, std::int64_t>{1, 2}, {128, 10}, {700, 1000}, {40, 50'257}}) {
      auto const values = at::arange(rows * classes, at::kDouble).mul_(0.37).sin_().mul_(9);
      auto const logits = values.view({rows, classes}).to(torch_type);
      auto const host = run(logits, type, {}), gpu = run(logits, type, device);
      for (std::size_t i = 0; i < host.size(); ++i)
        EXPECT_TRUE(host[i].equal(gpu[i]))
            << str(rows, " x ", classes, ", type ", int(type), ", result ", i);
    }
}

}  // namespace
}  // namespace stratagem::gpu
