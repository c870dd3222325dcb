#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "data/augment.hpp"
#include "data/images/image_store.hpp"
#include "data/pixel_tables.hpp"

namespace stratagem {

/// Turns images on disk into a model's input: reads the part that the augmentation takes, scales it
/// to the input's size (bilinear with antialiasing, as torchvision does for tensors), mirrors and
/// normalises it. The same bits on every rank.
class StoredInput {
 public:
  /// `channels`, `size`: of the input [pixels].
  StoredInput(PixelTables tables, std::int64_t channels, std::int64_t size);

  /// Writes image `image` of `store` into `out`, fp32 [channels, size, size] of any strides.
  /// `number`: of the image in its set, by which `augmenter` draws. Error(bad_data) as
  /// ImageStore::read(). Any number of threads may call it, each with its own buffer.
  void write(ImageStore const& store, std::int64_t image, Augmenter const& augmenter,
             std::int64_t epoch, std::int64_t number, ReadBuffer& buffer,
             at::Tensor const& out) const;

 private:
  void normalise(std::uint8_t const* pixels, bool flip, at::Tensor const& out) const;

  PixelTables tables_;
  std::int64_t channels_;
  std::int64_t size_;
};

}  // namespace stratagem
