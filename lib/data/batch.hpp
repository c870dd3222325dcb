#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/augment.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "gpu/device.hpp"

namespace stratagem {

/// The samples that one rank trains on in one step.
struct Batch {
  at::Tensor images;      ///< [n, channels, size, size]
  at::Tensor labels;      ///< int64 [n]
  std::int64_t step = 0;  ///< counted from the start of training
  std::int64_t epoch = 0;
  std::int64_t first_slot = 0;  ///< index of the first sample in the global batch

  std::int64_t size() const { return labels.numel(); }
};

/// The image format that a model requires.
struct InputFormat {
  std::int64_t channels = 3;
  std::int64_t size = 32;  ///< height and width [pixels]
  at::ScalarType type = at::kFloat;
  at::MemoryFormat memory_format = at::MemoryFormat::Contiguous;
  gpu::Device device;
};

/// One image of a set, and how it is transformed.
struct Sample {
  std::int64_t image = 0;
  Move move;
};

/// Converts images of a dataset to a model's input, with the same bits on every rank:
///  - images that are too small are padded with zeros, up to 32 pixels;
///  - every pixel value p becomes (p/255 - mean)/stddev of its channel, in fp32;
///  - grey images are repeated for every channel;
///  - beyond 32 pixels, images are then scaled up bilinearly on the device, and cast to the type.
class BatchMaker {
 public:
  /// Error(usage) if the input is smaller than the images, or has fewer channels.
  BatchMaker(Dataset const& dataset, InputFormat const& format);

  gpu::Device const& device() const { return format_.device; }

  /// All steps except the last, into (pinned) host memory. Uses plain loops, so a thread may call
  /// it while others compute, without starting LibTorch's threads.
  Batch gather(ImageSet const& set, std::span<Sample const> samples) const;
  /// The last step, on the calling thread's compute stream.
  Batch deliver(Batch batch) const;
  /// Images [begin, end) of the set without augmentation, delivered.
  Batch evaluation_batch(ImageSet const& set, IndexRange const& range) const;

 private:
  using Table = std::array<float, 256>;  ///< pixel value -> normalised value

  void write_image(std::uint8_t const* pixels, Move const& move, std::span<std::uint8_t> moved,
                   at::Tensor const& image) const;

  InputFormat format_;
  std::int64_t channels_;   ///< of the dataset
  std::int64_t edge_;       ///< of the dataset's images
  std::int64_t host_edge_;  ///< after padding
  std::vector<Table> tables_;
};

}  // namespace stratagem
