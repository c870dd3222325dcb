#include "data/images/stored_input.hpp"

#include <utility>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

/// [size, size, channels], interleaved as `pixels` is.
at::Tensor scaled(Pixels& pixels, std::int64_t size) {
  auto const whole = at::from_blob(pixels.values.data(),
                                   {1, pixels.height, pixels.width, pixels.channels}, at::kByte);
  auto const image = whole.permute({0, 3, 1, 2});  // LibTorch's name of the same memory
  return at::_upsample_bilinear2d_aa(image, {size, size}, /*align_corners=*/false)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace

StoredInput::StoredInput(PixelTables tables, std::int64_t channels, std::int64_t size)
    : tables_(std::move(tables)), channels_(channels), size_(size) {}

void StoredInput::write(ImageStore const& store, std::int64_t image, Augmenter const& augmenter,
                        std::int64_t epoch, std::int64_t number, ReadBuffer& buffer,
                        at::Tensor const& out) const {
  bool flip = false;
  auto const choose = [&](ImageSize const& size) {
    auto const crop = augmenter.crop(epoch, number, size, size_);
    flip = crop.flip;
    return crop.region;
  };
  store.read(image, choose, {size_, size_}, channels_, buffer);
  auto& pixels = buffer.pixels;
  if (pixels.height == size_ && pixels.width == size_)
    normalise(pixels.values.data(), flip, out);
  else
    normalise(scaled(pixels, size_).const_data_ptr<std::uint8_t>(), flip, out);
}

void StoredInput::normalise(std::uint8_t const* pixels, bool flip, at::Tensor const& out) const {
  auto const plane = out.stride(0), line = out.stride(1), step = out.stride(2);
  auto* const values = out.mutable_data_ptr<float>();
  for (std::int64_t c = 0; c < channels_; ++c) {
    auto const& table = tables_.of(c);
    for (std::int64_t y = 0; y < size_; ++y) {
      auto const* from = pixels + y * size_ * channels_ + c;
      auto* to = values + c * plane + y * line + (flip ? (size_ - 1) * step : 0);
      auto const forward = flip ? -step : step;
      for (std::int64_t x = 0; x < size_; ++x) to[x * forward] = table[from[x * channels_]];
    }
  }
}

}  // namespace stratagem
