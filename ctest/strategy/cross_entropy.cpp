#include "strategy/shared/cross_entropy.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stratagem
