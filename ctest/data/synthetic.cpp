#include "data/synthetic/synthetic.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

void expect_plausible(Dataset const& dataset) {
  for (auto const* set : {&dataset.train, &dataset.test}) {
    EXPECT_TRUE(at::equal(set->labels, at::arange(set->size()).remainder(10)));
    auto const channels = set->images.size(1);
    for (std::int64_t c = 0; c < channels; ++c) {
      auto const values = set->images.select(1, c).to(at::kFloat) / 255;
      EXPECT_NEAR(values.mean().item<double>(), dataset.mean[static_cast<std::size_t>(c)], 0.01);
      EXPECT_NEAR(values.std().item<double>(), dataset.stddev[static_cast<std::size_t>(c)], 0.01);
    }
  }
  auto const shared = std::min(dataset.train.size(), dataset.test.size());
  auto const same = dataset.train.images.narrow(0, 0, shared)
                        .eq(dataset.test.images.narrow(0, 0, shared))
                        .flatten(1)
                        .all(1);
  EXPECT_FALSE(same.any().item<bool>()) << "training and test images must differ";
}

TEST(Synthetic, IsBalancedAndNormalisedByItsOwnFigures) {
  expect_plausible(make_synthetic_digits());
  expect_plausible(make_synthetic_shapes());
}

TEST(Synthetic, IsTheSameOnEveryMachine) {
  EXPECT_EQ(load_dataset({.dataset = "synthetic-digits"}).fingerprint, "920a2c920c432694");
  EXPECT_EQ(load_dataset({.dataset = "synthetic-shapes"}).fingerprint, "ea0f08f01c2ac918");
}

}  // namespace
}  // namespace stratagem
