// Runs on the real files that STRATAGEM_DATA names.
#include <cstdlib>

#include <ATen/ATen.h>

#include "data/dataset.hpp"
#include "data/files.hpp"

namespace stratagem {
namespace {

char const* root_of(char const* folder) {
  auto const* root = std::getenv("STRATAGEM_DATA");
  return root != nullptr && std::filesystem::is_directory(std::filesystem::path(root) / folder)
             ? root
             : nullptr;
}

TEST(PublishedFiles, Mnist) {
  auto const* root = root_of("mnist");
  if (root == nullptr) GTEST_SKIP() << "SKIPPED: needs STRATAGEM_DATA with mnist/";
  auto const dataset = load_dataset({.dataset = "mnist", .root = root});
  EXPECT_EQ(dataset.train.size(), 60000);
  EXPECT_EQ(dataset.test.size(), 10000);
  for (auto const& source : dataset.sources) EXPECT_TRUE(source.published) << source.path;
  auto const& images = dataset.train.images;
  auto const sum = images.sum().item<std::int64_t>();
  EXPECT_EQ(sum, 1567298545);
  EXPECT_EQ(dataset.test.images.sum().item<std::int64_t>(), 264923200);
  EXPECT_NEAR(static_cast<double>(sum) / images.numel() / 255, dataset.mean[0], 5e-5);
  EXPECT_TRUE(at::equal(dataset.train.labels.narrow(0, 0, 8),
                        at::tensor({5, 0, 4, 1, 9, 2, 1, 3}, at::kLong)));
  EXPECT_EQ(dataset.fingerprint, "0924c5054104333e");
}

TEST(PublishedFiles, Cifar10) {
  auto const* root = root_of("cifar-10-batches-bin");
  if (root == nullptr) GTEST_SKIP() << "SKIPPED: needs STRATAGEM_DATA with cifar-10-batches-bin/";
  auto const dataset = load_dataset({.dataset = "cifar10", .root = root});
  // The whole of it or a balanced subset: photographs of ten classes either way.
  EXPECT_EQ(dataset.sources.size(), 6u);
  EXPECT_EQ(dataset.train.labels.bincount().numel(), 10);
  for (std::int64_t c = 0; c < 3; ++c) {
    auto const channel = dataset.train.images.select(1, c).to(at::kDouble) / 255;
    EXPECT_NEAR(channel.mean().item<double>(), dataset.mean[static_cast<std::size_t>(c)], 0.01);
    EXPECT_NEAR(channel.std().item<double>(), dataset.stddev[static_cast<std::size_t>(c)], 0.01);
  }
  bool const whole = dataset.train.size() == 50000;
  for (auto const& source : dataset.sources) EXPECT_EQ(source.published, whole) << source.path;
}

}  // namespace
}  // namespace stratagem
