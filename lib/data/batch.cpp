#include "data/batch.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t largest_padded = 32;  // [pixels]

void check(Dataset const& dataset, InputFormat const& format) {
  auto const edge = dataset.image_size(), channels = dataset.channels();
  if (format.size < edge)
    throw Error(ExitCode::usage, str("data.input_size: ", format.size, " is too small"),
                str("images of ", dataset.name, " have ", edge, "x", edge, " pixels"),
                str("take ", edge, " or more"));
  if (format.channels != channels && channels != 1)
    throw Error(ExitCode::usage, str("the model takes ", format.channels, " channel(s), ",
                                     dataset.name, " has ", channels));
}

}  // namespace

BatchMaker::BatchMaker(Dataset const& dataset, InputFormat const& format)
    : format_(format), channels_(dataset.channels()), edge_(dataset.image_size()) {
  check(dataset, format);
  host_edge_ = std::max(edge_, std::min(format.size, largest_padded));
  for (std::size_t c = 0; c < dataset.mean.size(); ++c) {
    auto const mean = static_cast<float>(dataset.mean[c]);
    auto const stddev = static_cast<float>(dataset.stddev[c]);
    Table table;
    for (std::size_t p = 0; p < table.size(); ++p)
      table[p] = (static_cast<float>(p) / 255.0F - mean) / stddev;
    tables_.push_back(table);
  }
  ensures(static_cast<std::int64_t>(tables_.size()) == channels_, "every channel has its mean");
}

void BatchMaker::write_image(std::uint8_t const* pixels, Move const& move,
                             std::span<std::uint8_t> moved, at::Tensor const& image) const {
  auto* const out = image.mutable_data_ptr<float>();
  auto const plane = image.stride(0), line = image.stride(1), step = image.stride(2);
  auto const border = (host_edge_ - edge_) / 2;
  for (std::int64_t c = 0; c < format_.channels; ++c) {
    auto const source_channel = std::min(c, channels_ - 1);
    auto const& table = tables_[static_cast<std::size_t>(source_channel)];
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

Batch BatchMaker::gather(ImageSet const& set, std::span<Sample const> samples) const {
  auto const count = static_cast<std::int64_t>(samples.size());
  auto const options =
      at::TensorOptions().pinned_memory(format_.device.kind == gpu::DeviceKind::cuda);
  Batch batch{at::empty({count, format_.channels, host_edge_, host_edge_},
                        options.dtype(at::kFloat), format_.memory_format),
              at::empty({count}, options.dtype(at::kLong))};
  auto const* pixels = set.images.const_data_ptr<std::uint8_t>();
  auto const* labels = set.labels.const_data_ptr<std::int64_t>();
  auto* const batch_labels = batch.labels.mutable_data_ptr<std::int64_t>();
  std::vector<std::uint8_t> moved(static_cast<std::size_t>(edge_ * edge_));
  for (std::int64_t i = 0; i < count; ++i) {
    auto const& [image, move] = samples[static_cast<std::size_t>(i)];
    expects(0 <= image && image < set.size(), "the sample is in the set");
    write_image(pixels + image * channels_ * edge_ * edge_, move, moved, batch.images[i]);
    batch_labels[i] = labels[image];
  }
  return batch;
}

Batch BatchMaker::deliver(Batch batch) const {
  auto const device = format_.device.torch();
  constexpr bool non_blocking = true;
  batch.labels = batch.labels.to(device, at::kLong, non_blocking);
  auto images = batch.images.to(device, at::kFloat, non_blocking);
  if (format_.size > host_edge_)
    images = at::upsample_bilinear2d(images, {format_.size, format_.size}, /*align_corners=*/false);
  batch.images = images.to(format_.type).contiguous(format_.memory_format);
  return batch;
}

Batch BatchMaker::evaluation_batch(ImageSet const& set, IndexRange const& range) const {
  std::vector<Sample> samples(static_cast<std::size_t>(range.size()));
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i].image = range.begin + static_cast<std::int64_t>(i);
  return deliver(gather(set, samples));
}

}  // namespace stratagem
