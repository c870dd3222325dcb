#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/crew.hpp"
#include "data/augment.hpp"
#include "data/dataset.hpp"
#include "data/images/stored_input.hpp"
#include "data/pixel_tables.hpp"
#include "data/sampler.hpp"
#include "gpu/device.hpp"
#include "gpu/stream.hpp"

namespace stratagem {

/// The samples that one rank trains on in one step.
struct Batch {
  at::Tensor inputs;      ///< images [n, channels, size, size], or tokens int64 [n, T]
  at::Tensor labels;      ///< int64 [n], or [n, T]
  std::int64_t step = 0;  ///< counted from the start of training
  std::int64_t epoch = 0;
  std::int64_t first_slot = 0;  ///< index of the first sample in the global batch
  /// Of the global batch, by its equal parts; empty where samples belong to no client.
  std::vector<DrawnClient> clients = {};

  /// Samples.
  std::int64_t size() const { return labels.size(0); }
};

/// The image format that a model requires, and who makes it.
struct InputFormat {
  std::int64_t channels = 3;
  std::int64_t size = 32;  ///< height and width [pixels]
  at::ScalarType type = at::kFloat;
  at::MemoryFormat memory_format = at::MemoryFormat::Contiguous;
  gpu::Device device;
  int threads = 1;  ///< that read images from disk
};

/// Converts images of a dataset to a model's input, with the same bits on every rank. Images in
/// memory:
///  - those that are too small are padded with zeros, up to 32 pixels;
///  - every pixel value p becomes (p/255 - mean)/stddev of its channel, in fp32;
///  - grey images are repeated for every channel;
///  - beyond 32 pixels, images are then scaled up bilinearly on the device, and cast to the type.
/// Images on disk: see StoredInput. Text: tokens as they are.
class BatchMaker {
 public:
  /// Error(usage) if the input is smaller than the images, or has fewer channels.
  BatchMaker(Dataset const& dataset, InputFormat const& format);

  gpu::Device const& device() const { return format_.device; }

  /// All steps except the last, into (pinned) host memory, of images augmented as in `epoch`.
  /// Starts none of LibTorch's threads, so a thread may call it while others compute.
  Batch gather(SampleSet const& set, std::span<std::int64_t const> images,
               Augmenter const& augmenter, std::int64_t epoch) const;
  /// The last step: it goes on beside what the compute stream does, which may use the result.
  Batch deliver(Batch batch) const;
  /// Images [begin, end) of the set without augmentation, delivered.
  Batch evaluation_batch(SampleSet const& set, IndexRange const& range) const;

 private:
  /// Who reads from disk, and into what; of one call at a time.
  struct DiskReaders {
    Crew crew;
    std::vector<ReadBuffer> buffers;  ///< one per member
  };

  void upload(Batch& batch) const;
  Batch gather_text(Sequences const& text, std::int64_t first,
                    std::span<std::int64_t const> samples) const;
  void gather_from_memory(SampleSet const& set, std::span<std::int64_t const> images,
                          Augmenter const& augmenter, std::int64_t epoch, Batch const& into) const;
  void gather_from_disk(SampleSet const& set, std::span<std::int64_t const> images,
                        Augmenter const& augmenter, std::int64_t epoch, Batch const& into) const;
  void write_image(std::uint8_t const* pixels, Move const& move, std::span<std::uint8_t> moved,
                   at::Tensor const& image) const;

  InputFormat format_;
  std::int64_t channels_;       ///< of images in memory
  std::int64_t edge_ = 0;       ///< of images in memory
  std::int64_t host_edge_ = 0;  ///< of what gather() makes
  PixelTables tables_;
  StoredInput stored_;
  gpu::SideStream copies_;                ///< to the device
  std::unique_ptr<DiskReaders> readers_;  ///< of images on disk
};

}  // namespace stratagem
