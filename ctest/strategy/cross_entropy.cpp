#include "strategy/pass/cross_entropy.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpu/memory.hpp"
#include "params/initialise.hpp"

namespace stratagem {
namespace {

at::Tensor logits_of(at::ScalarType type) {
  auto const logits = at::empty({16, 10});
  initialise(logits, {"logits", {16, 10}, Initialiser::normal(3)}, 1);
  return logits.to(type);
}

at::Tensor labels() {
  return at::arange(16).mul(7).remainder(10);
}

/// (softmax - one_hot) / n, in fp64.
at::Tensor gradient_of(at::Tensor const& logits) {
  auto const wide = logits.to(at::kDouble);
  return (wide.softmax(1) - at::one_hot(labels(), 10)) / 16;
}

TEST(CrossEntropy, LossAndGradientFollowTheFormulas) {
  struct {
    at::ScalarType type;
    double tolerance;
  } const cases[]{{at::kDouble, 1e-15}, {at::kFloat, 1e-6}, {at::kBFloat16, 4e-3}};
  for (auto const& [type, tolerance] : cases) {
    auto const logits = logits_of(type);
    auto const result = cross_entropy(logits, labels());
    auto const expected = at::cross_entropy_loss(logits.to(at::kDouble), labels());
    EXPECT_NEAR(result.loss.item<double>(), expected.item<double>(), 1e-6) << type;
    EXPECT_EQ(result.gradient.scalar_type(), type);
    auto const error = (result.gradient.to(at::kDouble) - gradient_of(logits)).abs().max();
    EXPECT_LT(error.item<double>(), tolerance * 0.1) << type;
    auto const hits = logits.argmax(1).eq(labels()).sum().item<std::int64_t>();
    EXPECT_EQ(result.correct.item<std::int64_t>(), hits);
    EXPECT_FALSE(result.loss.requires_grad());
  }
}

TEST(CrossEntropy, ScaleIsOfTheGradientAlone) {
  auto const plain = cross_entropy(logits_of(at::kFloat), labels());
  auto const scaled = cross_entropy(logits_of(at::kFloat), labels(), 1024);
  EXPECT_EQ(scaled.loss.item<float>(), plain.loss.item<float>());
  EXPECT_TRUE(scaled.gradient.equal(plain.gradient * 1024));
}

TEST(CrossEntropy, ALossThatIsNotFiniteIsHandedOn) {
  auto const logits = logits_of(at::kFloat);
  logits[3][4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(cross_entropy(logits, labels()).loss.item<float>()));
}

/// 3 x 200 labels of 4,001 classes: three pieces, and one at once in blocks of 200.
TEST(CrossEntropy, ManyLogitsAreGoneThroughByRows) {
  auto const logits = at::empty({3, 200, 4001});
  initialise(logits, {"logits", {3, 200, 4001}, Initialiser::normal(3)}, 1);
  auto const labels = at::arange(600).mul(7).remainder(4001).view({3, 200});
  auto const whole = cross_entropy(logits, labels, 8);
  EXPECT_EQ(whole.gradient.sizes(), logits.sizes());
  auto const wide = logits.to(at::kDouble).flatten(0, 1);
  auto const expected = at::cross_entropy_loss(wide, labels.flatten());
  EXPECT_NEAR(whole.loss.item<double>(), expected.item<double>(), 1e-6);
  auto const gradient = (wide.softmax(1) - at::one_hot(labels.flatten(), 4001)) * (8.0 / 600);
  // An fp32 error of 1e-6 in log p is one of 1e-6 p 8/600.
  EXPECT_LT((whole.gradient.flatten(0, 1) - gradient).abs().max().item<double>(), 5e-8);
  EXPECT_EQ(whole.correct.item<std::int64_t>(),
            wide.argmax(1).eq(labels.flatten()).sum().item<std::int64_t>());
  double loss = 0;
  for (int i = 0; i < 3; ++i) {
    auto const part = cross_entropy(logits[i], labels[i], 8);
    loss += part.loss.item<double>() / 3;
    EXPECT_TRUE(at::allclose(whole.gradient[i], part.gradient / 3, 1e-5, 1e-9));
  }
  EXPECT_NEAR(loss, whole.loss.item<double>(), 1e-6);
  auto const sums = loss_sums(logits, labels);
  EXPECT_NEAR(sums.loss.item<double>() / 600, expected.item<double>(), 1e-12);
  EXPECT_EQ(sums.correct.item<double>(), whole.correct.item<double>());
}

/// Beside the gradient, a few pieces and no copy of all logits.
TEST(CrossEntropy, HoldsNoCopyOfManyLogits) {
  auto const logits = at::zeros({1024, 16384});
  auto const labels = at::zeros({1024}, at::kLong);
  gpu::Device const host;
  auto const before = gpu::live_memory(host).total();
  gpu::reset_peak_memory(host);
  auto const result = cross_entropy(logits, labels);
  auto const peak = gpu::peak_memory(host).total() - before;
  auto const gradient = static_cast<std::int64_t>(result.gradient.nbytes());
  EXPECT_GE(peak, gradient);
  EXPECT_LT(peak, gradient + gradient / 4);
}

}  // namespace
}  // namespace stratagem
