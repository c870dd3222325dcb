#include "data/tar/shard_images.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "data/images/encoded_image.hpp"

namespace stratagem {

ShardImages::ShardImages(std::vector<std::filesystem::path> const& shards) {
  for (auto const& path : shards) {
    auto const found = list_samples(path);
    auto const begin = std::ssize(samples_);
    runs_.push_back({begin, begin + std::ssize(found)});
    samples_.insert(samples_.end(), found.begin(), found.end());
    shards_.emplace_back(path);
  }
}

std::vector<std::int64_t> ShardImages::labels() const {
  std::vector<std::int64_t> labels;
  for (auto const& sample : samples_) labels.push_back(sample.label);
  return labels;
}

RandomAccessFile const& ShardImages::shard_of(std::int64_t image) const {
  expects(0 <= image && image < std::ssize(samples_), "the image is in the shards");
  auto const run = std::ranges::upper_bound(runs_, image, {}, &IndexRange::end);
  return shards_[static_cast<std::size_t>(run - runs_.begin())];
}

std::string ShardImages::name(std::int64_t image) const {
  auto const& key = samples_[static_cast<std::size_t>(image)].key;
  return str(shard_of(image).path().string(), ": ", printable(key));
}

std::string ShardImages::identity(std::int64_t image) const {
  auto const& sample = samples_[static_cast<std::size_t>(image)];
  return str(sample.key, " ", sample.size);
}

std::int64_t ShardImages::stored_bytes(std::int64_t image) const {
  return samples_[static_cast<std::size_t>(image)].size;
}

void ShardImages::load(std::int64_t image, std::vector<std::byte>& bytes) const {
  auto const& sample = samples_[static_cast<std::size_t>(image)];
  bytes.resize(static_cast<std::size_t>(sample.size));
  shard_of(image).read(sample.offset, bytes);
}

void ShardImages::read(std::int64_t image, ChooseRegion const& choose, ImageSize const& least,
                       std::int64_t channels, ReadBuffer& buffer) const {
  load(image, buffer.encoded);
  EncodedImage const encoded(buffer.encoded, name(image));
  encoded.decode(choose(encoded.size()), least, channels, buffer.pixels);
}

}  // namespace stratagem
