#include "gpu/layers/cross_entropy.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace stratagem::gpu {
namespace {

struct Result {
  float loss, correct;
  at::Tensor gradient;
};

Result run(at::Tensor const& logits, at::Tensor const& labels, Element type, float scale) {
  auto const gradient = at::empty_like(logits), of_rows = at::empty({2, logits.size(0)});
  Result result{0, 0, gradient};
  cross_entropy_on_host({logits.size(0), logits.size(1), type, logits.data_ptr(),
                         labels.data_ptr<std::int64_t>(), gradient.data_ptr(), scale,
                         of_rows[0].data_ptr<float>(), of_rows[1].data_ptr<float>(), &result.loss,
                         &result.correct});
  return result;
}

TEST(CrossEntropy, IsTorchs) {
  for (auto const& [rows, classes] :
       {std::pair<std::int64_t, std::int64_t>{1, 2}, {600, 10}, {5, 3001}})
    for (auto const& [type, torch_type] :
         {std::pair{Element::fp32, at::kFloat}, {Element::bf16, at::kBFloat16}}) {
      auto const values = at::arange(rows * classes, at::kDouble).mul_(0.37).sin_().mul_(9);
      auto const logits = values.view({rows, classes}).to(torch_type);
      auto const labels = at::arange(rows, at::kLong).mul_(7).remainder_(classes);
      auto const exact = logits.to(at::kDouble).requires_grad_();
      auto const loss = at::cross_entropy_loss(exact, labels);
      auto const gradient =
          torch::autograd::grad({loss}, {exact}, {at::full_like(loss, 8)}).front();
      auto const own = run(logits, labels, type, 8);
      EXPECT_NEAR(own.loss, loss.item<double>(), 2e-6 * loss.item<double>());
      EXPECT_EQ(own.correct, exact.argmax(1).eq(labels).sum().item<double>());
      auto const apart = (own.gradient.to(at::kDouble) - gradient).abs().max().item<double>();
      EXPECT_LT(apart * static_cast<double>(rows), type == Element::fp32 ? 4e-6 : 4e-2);
    }
}

TEST(CrossEntropy, TellsOfWhatIsNotFinite) {
  auto const logits = at::zeros({3, 4});
  auto const labels = at::zeros({3}, at::kLong);
  EXPECT_FLOAT_EQ(run(logits, labels, Element::fp32, 1).loss, std::log(4.0F));
  auto const huge = logits.clone();
  huge[1][2] = INFINITY;
  EXPECT_TRUE(std::isnan(run(huge, labels, Element::fp32, 1).loss));
  auto const broken = logits.clone();
  broken[2][3] = NAN;
  EXPECT_TRUE(std::isnan(run(broken, labels, Element::fp32, 1).loss));
  auto const unknown = at::full({3}, 4, at::kLong);
  EXPECT_TRUE(std::isnan(run(logits, unknown, Element::fp32, 1).loss));
}

}  // namespace
}  // namespace stratagem::gpu
