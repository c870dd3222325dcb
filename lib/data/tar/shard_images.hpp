#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/random_access_file.hpp"
#include "data/images/image_store.hpp"
#include "data/tar/shard.hpp"

namespace stratagem {

/// JPEG and PNG images in tar shards, see list_samples(); each shard is one run. Its files stay
/// open.
class ShardImages final : public ImageStore {
 public:
  /// Error(bad_data) as list_samples().
  explicit ShardImages(std::vector<std::filesystem::path> const& shards);

  std::vector<std::int64_t> labels() const;

  std::int64_t channels() const override { return 0; }
  Runs runs() const override { return {.parts = runs_}; }
  std::string name(std::int64_t image) const override;
  std::string identity(std::int64_t image) const override;
  std::int64_t stored_bytes(std::int64_t image) const override;
  void load(std::int64_t image, std::vector<std::byte>& bytes) const override;
  void read(std::int64_t image, ChooseRegion const& choose, ImageSize const& least,
            std::int64_t channels, ReadBuffer& buffer) const override;

 private:
  RandomAccessFile const& shard_of(std::int64_t image) const;

  std::vector<RandomAccessFile> shards_;
  std::vector<IndexRange> runs_;  ///< one per shard
  std::vector<ShardSample> samples_;
};

}  // namespace stratagem
