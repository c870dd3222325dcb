#include "data/images/stored_input.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

/// One image in memory, of which it hands out parts, or all of it at half the size.
class OneImage final : public ImageStore {
 public:
  OneImage(std::int64_t height, std::int64_t width)
      : image_(at::arange(height * width * 3)
                   .mul(37)
                   .remainder(251)
                   .to(at::kByte)
                   .view({height, width, 3})) {}

  at::Tensor const& image() const { return image_; }

  std::int64_t channels() const override { return 3; }
  std::string name(std::int64_t) const override { return "one"; }
  std::string identity(std::int64_t) const override { return "one"; }
  std::int64_t stored_bytes(std::int64_t) const override { return image_.numel(); }
  void load(std::int64_t, std::vector<std::byte>& bytes) const override {
    auto const* first = static_cast<std::byte const*>(image_.const_data_ptr());
    bytes.assign(first, first + image_.numel());
  }
  void read(std::int64_t, ChooseRegion const& choose, ImageSize const&, std::int64_t channels,
            ReadBuffer& buffer) const override {
    auto const region = choose({image_.size(0), image_.size(1)});
    auto const part = image_.narrow(0, region.top, region.height)
                          .narrow(1, region.left, region.width)
                          .contiguous();
    auto const* bytes = part.const_data_ptr<std::uint8_t>();
    buffer.pixels = {region.height, region.width, channels, {bytes, bytes + part.numel()}};
  }

 private:
  at::Tensor image_;
};

PixelStatistics const statistics{{0.4, 0.5, 0.6}, {0.2, 0.25, 0.3}};

at::Tensor write(OneImage const& image, Augmenter const& augmenter, std::int64_t epoch,
                 std::int64_t size, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  auto const out = at::empty({1, 3, size, size}, at::TensorOptions(at::kFloat), format);
  ReadBuffer buffer;
  StoredInput(PixelTables(statistics), 3, size)
      .write(image, 0, augmenter, epoch, 0, buffer, out[0]);
  return out;
}

/// The same by LibTorch alone.
at::Tensor expected(OneImage const& image, Crop const& crop, std::int64_t size) {
  auto const& [region, flip] = crop;
  auto part = image.image()
                  .narrow(0, region.top, region.height)
                  .narrow(1, region.left, region.width)
                  .permute({2, 0, 1})
                  .unsqueeze(0)
                  .contiguous(at::MemoryFormat::ChannelsLast);
  part = at::_upsample_bilinear2d_aa(part, {size, size}, false).to(at::kFloat);
  if (flip) part = part.flip({3});
  auto const mean = at::tensor(statistics.mean, at::kFloat).view({1, 3, 1, 1});
  auto const stddev = at::tensor(statistics.stddev, at::kFloat).view({1, 3, 1, 1});
  return (part / 255 - mean) / stddev;
}

TEST(StoredInput, CutsScalesMirrorsAndNormalises) {
  OneImage const image(40, 50);
  Augmenter const augmenter(Augmentation::standard, 3, true);
  int flips = 0;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch)
    for (std::int64_t const size : {8, 31, 64}) {
      auto const crop = augmenter.crop(epoch, 0, {40, 50}, size);
      flips += crop.flip ? 1 : 0;
      EXPECT_TRUE(at::equal(write(image, augmenter, epoch, size), expected(image, crop, size)));
    }
  EXPECT_GT(flips, 3);
  EXPECT_LT(flips, 57);
}

TEST(StoredInput, EvaluatesTheMiddle) {
  OneImage const image(40, 50);
  Augmenter const none;
  EXPECT_TRUE(at::equal(write(image, none, 0, 20), expected(image, {middle({40, 50}, 20)}, 20)));
  OneImage const fitting(20, 20);
  EXPECT_TRUE(at::equal(write(fitting, none, 0, 20), expected(fitting, {{0, 0, 20, 20}}, 20)));
}

TEST(StoredInput, MemoryFormatMovesBytesAndChangesNoValue) {
  OneImage const image(40, 50);
  Augmenter const augmenter(Augmentation::standard, 3, true);
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    auto const last = write(image, augmenter, epoch, 16, at::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(at::equal(last, write(image, augmenter, epoch, 16)));
  }
}

}  // namespace
}  // namespace stratagem
