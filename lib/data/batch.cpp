#include "data/batch.hpp"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t largest_padded = 32;  // [pixels]

void check(Dataset const& dataset, InputFormat const& format) {
  if (dataset.train.text) return;
  auto const channels = dataset.channels();
  if (channels != 0 && format.channels != channels && channels != 1)
    throw Error(ExitCode::usage, str("the model takes ", format.channels, " channel(s), ",
                                     dataset.name, " has ", channels));
  if (dataset.train.store) return;
  auto const edge = dataset.image_size();
  if (format.size < edge)
    throw Error(ExitCode::usage, str("data.input_size: ", format.size, " is too small"),
                str("images of ", dataset.name, " have ", edge, "x", edge, " pixels"),
                str("take ", edge, " or more"));
}

}  // namespace

BatchMaker::BatchMaker(Dataset const& dataset, InputFormat const& format)
    : format_(format),
      channels_(dataset.channels()),
      tables_(dataset.statistics(format.channels)),
      stored_(tables_, format.channels, format.size),
      copies_(format.device) {
  check(dataset, format);
  if (dataset.train.text) return;
  if (dataset.train.store) {
    host_edge_ = format.size;
    readers_.reset(new DiskReaders{{format.threads, "decode"}, {}});
    readers_->buffers.resize(static_cast<std::size_t>(format.threads));
    return;
  }
  edge_ = dataset.image_size();
  host_edge_ = std::max(edge_, std::min(format.size, largest_padded));
}

void BatchMaker::write_image(std::uint8_t const* pixels, Move const& move,
                             std::span<std::uint8_t> moved, at::Tensor const& image) const {
  auto* const out = image.mutable_data_ptr<float>();
  auto const plane = image.stride(0), line = image.stride(1), step = image.stride(2);
  auto const border = (host_edge_ - edge_) / 2;
  for (std::int64_t c = 0; c < format_.channels; ++c) {
    auto const source_channel = std::min(c, channels_ - 1);
    auto const& table = tables_.of(source_channel);
    auto* const target = out + c * plane;
    if (host_edge_ > edge_)
      for (std::int64_t y = 0; y < host_edge_; ++y)
        for (std::int64_t x = 0; x < host_edge_; ++x) target[y * line + x * step] = table[0];
    move_plane(pixels + source_channel * edge_ * edge_, moved.data(), edge_, move);
    for (std::int64_t y = 0; y < edge_; ++y) {
      auto const* from = moved.data() + y * edge_;
      auto* to = target + (y + border) * line + border * step;
      for (std::int64_t x = 0; x < edge_; ++x) to[x * step] = table[from[x]];
    }
  }
}

Batch BatchMaker::gather(SampleSet const& set, std::span<std::int64_t const> images,
                         Augmenter const& augmenter, std::int64_t epoch) const {
  if (set.text) return gather_text(*set.text, set.first_stored, images);
  auto const count = std::ssize(images);
  auto const options =
      at::TensorOptions().pinned_memory(format_.device.kind == gpu::DeviceKind::cuda);
  Batch const batch{at::empty({count, format_.channels, host_edge_, host_edge_},
                              options.dtype(at::kFloat), format_.memory_format),
                    at::empty({count}, options.dtype(at::kLong))};
  auto const* labels = set.labels.const_data_ptr<std::int64_t>();
  auto* const batch_labels = batch.labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    auto const image = images[static_cast<std::size_t>(i)];
    expects(0 <= image && image < set.size(), "the sample is in the set");
    batch_labels[i] = labels[image];
  }
  if (set.store)
    gather_from_disk(set, images, augmenter, epoch, batch);
  else
    gather_from_memory(set, images, augmenter, epoch, batch);
  return batch;
}

Batch BatchMaker::gather_text(Sequences const& text, std::int64_t first,
                              std::span<std::int64_t const> samples) const {
  auto const count = std::ssize(samples), length = text.length();
  auto const options = at::TensorOptions().dtype(at::kLong).pinned_memory(format_.device.kind ==
                                                                          gpu::DeviceKind::cuda);
  Batch const batch{at::empty({count, length}, options), at::empty({count, length}, options)};
  auto const row = [length](at::Tensor const& of, std::int64_t i) {
    return std::span(of.mutable_data_ptr<std::int64_t>() + i * length,
                     static_cast<std::size_t>(length));
  };
  for (std::int64_t i = 0; i < count; ++i)
    text.read(first + samples[static_cast<std::size_t>(i)], row(batch.inputs, i),
              row(batch.labels, i));
  return batch;
}

void BatchMaker::gather_from_memory(SampleSet const& set, std::span<std::int64_t const> images,
                                    Augmenter const& augmenter, std::int64_t epoch,
                                    Batch const& into) const {
  auto const* pixels = set.images.const_data_ptr<std::uint8_t>();
  std::vector<std::uint8_t> moved(static_cast<std::size_t>(edge_ * edge_));
  for (std::int64_t i = 0; i < std::ssize(images); ++i) {
    auto const image = images[static_cast<std::size_t>(i)];
    write_image(pixels + image * channels_ * edge_ * edge_, augmenter.move(epoch, image), moved,
                into.inputs[i]);
  }
}

void BatchMaker::gather_from_disk(SampleSet const& set, std::span<std::int64_t const> images,
                                  Augmenter const& augmenter, std::int64_t epoch,
                                  Batch const& into) const {
  readers_->crew.for_each(std::ssize(images), [&](std::int64_t i, int member) {
    auto const image = images[static_cast<std::size_t>(i)];
    stored_.write(*set.store, set.first_stored + image, augmenter, epoch, image,
                  readers_->buffers[static_cast<std::size_t>(member)], into.inputs[i]);
  });
}

Batch BatchMaker::deliver(Batch batch) const {
  copies_.run([&] { upload(batch); });
  copies_.hand_over(batch.inputs);
  copies_.hand_over(batch.labels);
  return batch;
}

void BatchMaker::upload(Batch& batch) const {
  auto const device = format_.device.torch();
  constexpr bool non_blocking = true;
  batch.labels = batch.labels.to(device, at::kLong, non_blocking);
  if (!at::isFloatingType(batch.inputs.scalar_type())) {
    batch.inputs = batch.inputs.to(device, at::kLong, non_blocking);
    return;
  }
  auto images = batch.inputs.to(device, at::kFloat, non_blocking);
  if (format_.size > host_edge_)
    images = at::upsample_bilinear2d(images, {format_.size, format_.size}, /*align_corners=*/false);
  batch.inputs = images.to(format_.type).contiguous(format_.memory_format);
}

Batch BatchMaker::evaluation_batch(SampleSet const& set, IndexRange const& range) const {
  std::vector<std::int64_t> images(static_cast<std::size_t>(range.size()));
  std::iota(images.begin(), images.end(), range.begin);
  return deliver(gather(set, images, Augmenter(), 0));
}

}  // namespace stratagem
