#include "data/batch.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "data/tiny_dataset.hpp"

namespace stratagem {
namespace {

using test::tiny_dataset;

constexpr auto channels_last = at::MemoryFormat::ChannelsLast;

/// The same arithmetic by LibTorch.
at::Tensor normalised(Dataset const& dataset, at::Tensor const& images) {
  auto const shape = std::vector<std::int64_t>{1, -1, 1, 1};
  auto const mean = at::tensor(dataset.mean, at::kFloat).view(shape);
  auto const stddev = at::tensor(dataset.stddev, at::kFloat).view(shape);
  return (images.to(at::kFloat) / 255 - mean) / stddev;
}

at::Tensor images_of(Dataset const& dataset, InputFormat const& format) {
  return BatchMaker(dataset, format)
      .evaluation_batch(dataset.test, {0, dataset.test.size()})
      .inputs;
}

TEST(Batch, NormalisesEveryPixelAndKeepsLabels) {
  auto const dataset = tiny_dataset(5, 3, 32);
  auto const batch = BatchMaker(dataset, {}).evaluation_batch(dataset.test, {1, 4});
  EXPECT_TRUE(at::equal(batch.inputs, normalised(dataset, dataset.test.images.narrow(0, 1, 3))));
  EXPECT_TRUE(at::equal(batch.labels, at::tensor({1, 2, 3}, at::kLong)));
  EXPECT_EQ(batch.size(), 3);
}

TEST(Batch, MemoryFormatMovesBytesAndChangesNoValue) {
  for (auto const& [channels, edge, size] : {std::array{3, 32, 32}, {1, 28, 32}, {3, 32, 48}}) {
    auto const dataset = tiny_dataset(4, channels, edge);
    auto const plain = images_of(dataset, {.size = size});
    auto const last = images_of(dataset, {.size = size, .memory_format = channels_last});
    EXPECT_TRUE(plain.is_contiguous());
    EXPECT_TRUE(last.is_contiguous(channels_last));
    EXPECT_TRUE(at::allclose(plain, last, 0, size > 32 ? 1e-6 : 0));
  }
}

TEST(Batch, GreyImagesAreRepeatedForEveryChannel) {
  auto const dataset = tiny_dataset(4, 1, 28);
  auto const one = images_of(dataset, {.channels = 1, .size = 28});
  EXPECT_EQ(one.sizes(), (std::vector<std::int64_t>{4, 1, 28, 28}));
  EXPECT_TRUE(
      at::equal(images_of(dataset, {.channels = 3, .size = 28}), one.expand({4, 3, 28, 28})));
}

TEST(Batch, SmallImagesArePaddedWithZeroPixels) {
  auto const dataset = tiny_dataset(4, 1, 28);
  for (auto const& [size, border] : {std::array{28, 0}, {30, 1}, {32, 2}}) {
    auto const expected = normalised(
        dataset, at::constant_pad_nd(dataset.test.images, {border, border, border, border}));
    EXPECT_TRUE(at::equal(images_of(dataset, {.channels = 1, .size = size}), expected)) << size;
  }
}

TEST(Batch, LargerInputIsScaledUpBilinearly) {
  for (auto const& [channels, edge, border] : {std::array{3, 32, 0}, {1, 28, 2}}) {
    auto const dataset = tiny_dataset(2, channels, edge);
    auto const padded = at::constant_pad_nd(dataset.test.images, {border, border, border, border});
    auto const expected = at::upsample_bilinear2d(normalised(dataset, padded), {80, 80}, false);
    EXPECT_TRUE(at::equal(images_of(dataset, {.channels = channels, .size = 80}), expected));
  }
}

TEST(Batch, IsCastLast) {
  auto const dataset = tiny_dataset(4, 3, 32);
  auto const images = images_of(dataset, {.type = at::kBFloat16, .memory_format = channels_last});
  EXPECT_EQ(images.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(images.is_contiguous(channels_last));
  EXPECT_TRUE(at::equal(images, images_of(dataset, {}).to(at::kBFloat16)));
}

TEST(Batch, AppliesTheMovesOfItsEpoch) {
  auto const dataset = tiny_dataset(4, 3, 32);
  Augmenter const augmenter(Augmentation::standard, 5, true);
  BatchMaker const maker(dataset, {});
  bool flipped = false;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> const images{2};
    auto const batch = maker.deliver(maker.gather(dataset.train, images, augmenter, epoch));
    auto const move = augmenter.move(epoch, 2);
    auto const image = dataset.train.images.narrow(0, 2, 1);
    auto const turned = move.flip ? image.flip({3}) : image;
    auto const expected =
        at::constant_pad_nd(turned, {move.right, -move.right, move.down, -move.down});
    EXPECT_TRUE(at::equal(batch.inputs, normalised(dataset, expected)));
    flipped = flipped || move.flip;
  }
  EXPECT_TRUE(flipped);
}

TEST(Batch, RefusesInputsTheDataCannotServe) {
  auto refuse = [](Dataset const& dataset, InputFormat const& format, char const* message) {
    try {
      BatchMaker const maker(dataset, format);
      ADD_FAILURE() << "accepted; expected: " << message;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  refuse(tiny_dataset(1, 3, 32), {.size = 28}, "data.input_size: 28 is too small");
  refuse(tiny_dataset(1, 3, 32), {.channels = 1}, "takes 1 channel(s), tiny has 3");
}

}  // namespace
}  // namespace stratagem
