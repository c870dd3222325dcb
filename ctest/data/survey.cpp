#include "data/survey/survey.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/files.hpp"
#include "data/folder/folder_images.hpp"
#include "data/image_files.hpp"
#include "data/own_data.hpp"
#include "data/survey/read_rate.hpp"

namespace stratagem {
namespace {

using test::numbered_pixels;
using test::write_png;

Survey survey_of(Dataset const& dataset, int threads) {
  Crew crew(threads, "test");
  std::int64_t told = 0;
  auto const found = survey(dataset.train, 3, crew, [&](std::int64_t done) { told = done; });
  EXPECT_EQ(told, dataset.train.size());
  return found;
}

/// Two classes with images of several sizes.
Dataset some_images(test::Scratch const& folder) {
  for (int i = 0; i < 5; ++i)
    write_png(folder / "train/a" / (std::to_string(i) + ".png"), 4, 4, numbered_pixels(4, 3, i));
  write_png(folder / "train/b/5.png", 10, 10, numbered_pixels(10, 3, 5));
  write_png(folder / "train/b/6.png", 2, 3, std::vector<std::uint8_t>(18, 51));
  return open_own_data({.dataset = "own", .path = folder.path().string(), .holdout = 1});
}

TEST(Survey, CountsAndMeasures) {
  test::Scratch folder;
  auto const found = survey_of(some_images(folder), 1);
  EXPECT_EQ(found.images, 7);
  EXPECT_EQ(found.classes, 2);
  EXPECT_EQ(found.per_class.least, 2);
  EXPECT_EQ(found.per_class.most, 5);
  EXPECT_EQ(found.height.least, 2);
  EXPECT_EQ(found.height.median, 4);
  EXPECT_EQ(found.height.most, 10);
  EXPECT_EQ(found.width.least, 3);
  EXPECT_TRUE(found.damaged.empty());
}

TEST(Survey, EveryImageCountsAlike) {
  test::Scratch folder;
  auto const found = survey_of(some_images(folder), 2);
  std::vector<at::Tensor> means, squares;
  auto const add = [&](std::vector<std::uint8_t> const& values) {
    auto const pixels = at::tensor(values, at::kByte).to(at::kDouble).div(255).view({-1, 3});
    means.push_back(pixels.mean(0));
    squares.push_back(pixels.square().mean(0));
  };
  for (int i = 0; i < 5; ++i) add(numbered_pixels(4, 3, i));
  add(numbered_pixels(10, 3, 5));
  add(std::vector<std::uint8_t>(18, 51));
  auto const mean = at::stack(means).mean(0);
  auto const stddev = (at::stack(squares).mean(0) - mean.square()).sqrt();
  EXPECT_TRUE(at::allclose(at::tensor(found.pixels.mean), mean, 0, 1e-12));
  EXPECT_TRUE(at::allclose(at::tensor(found.pixels.stddev), stddev, 0, 1e-12));
}

TEST(Survey, ThreadsChangeNoBit) {
  test::Scratch folder;
  auto const dataset = some_images(folder);
  auto const alone = survey_of(dataset, 1), together = survey_of(dataset, 4);
  EXPECT_EQ(alone.pixels.mean, together.pixels.mean);
  EXPECT_EQ(alone.pixels.stddev, together.pixels.stddev);
}

TEST(Survey, ListsAllThatIsDamaged) {
  test::Scratch folder;
  auto const dataset = some_images(folder);
  test::write_file(folder / "train/a/1.png", "no image");
  test::write_file(folder / "train/b/6.png", "");
  auto const found = survey_of(dataset, 2);
  ASSERT_EQ(found.damaged.size(), 2u);
  EXPECT_EQ(found.images, 7);
  for (auto const* name : {"train/a/1.png", "train/b/6.png"})
    EXPECT_TRUE(std::ranges::any_of(found.damaged, [&](auto const& text) {
      return text.find((folder / name).string()) != std::string::npos;
    })) << name;
}

TEST(Survey, ReadRateGoesRoundAndRound) {
  test::Scratch folder;
  auto const dataset = some_images(folder);
  EXPECT_GT(read_rate(dataset, {.size = 8}, 0.05), 20);
}

}  // namespace
}  // namespace stratagem
