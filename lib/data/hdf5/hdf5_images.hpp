#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/random_access_file.hpp"
#include "data/hdf5/piece_cache.hpp"
#include "data/images/image_store.hpp"
#include "h5/stored_array.hpp"

namespace stratagem {

/// The order of the dimensions of `images`.
enum class PixelOrder { channels_last, channels_first };

/// One HDF5 file of images of one size: dataset `images`, unsigned bytes [n, height, width,
/// channels] or [n, channels, height, width], and dataset `labels`, integers [n] >= 0. Attribute
/// `layout` of `images` is "NHWC" or "NCHW"; without it, the dimension of 1 or 3 tells. Attribute
/// `classes` of the file, if there is one, has as many elements as there are classes; or it is
/// their number, or a JSON list of them.
struct Hdf5File {
  /// Error(bad_data) names file, dataset, expected and found.
  explicit Hdf5File(std::filesystem::path const& path);

  std::int64_t size() const { return images.shape.front(); }
  std::int64_t image_bytes() const { return height * width * channels; }

  h5::StoredArray images;
  std::vector<std::int64_t> labels;
  std::optional<std::int64_t> classes;  ///< if the file says so
  PixelOrder order = PixelOrder::channels_last;
  std::int64_t height = 0, width = 0, channels = 0;
};

/// Channels of the images of one file, without reading labels. Error(bad_data) as above.
std::int64_t hdf5_channels(std::filesystem::path const& path);

/// The images of some files, all with the same number of channels; each piece of a file is one run.
/// They are read without the HDF5 library, with which the first, middle and last of each file are
/// compared once. A packed piece is kept until others were needed.
class Hdf5Images final : public ImageStore {
 public:
  /// Error(bad_data) as Hdf5File, and with the image that the library reads otherwise.
  explicit Hdf5Images(std::vector<std::filesystem::path> const& paths);

  std::vector<std::int64_t> labels() const;
  /// That the files name; else one more than the largest label.
  std::int64_t classes() const;

  std::int64_t channels() const override { return files_.front().content.channels; }
  Runs runs() const override;
  std::string name(std::int64_t image) const override;
  std::string identity(std::int64_t image) const override;
  std::int64_t stored_bytes(std::int64_t image) const override;
  void load(std::int64_t image, std::vector<std::byte>& bytes) const override;
  void read(std::int64_t image, ChooseRegion const& choose, ImageSize const& least,
            std::int64_t channels, ReadBuffer& buffer) const override;

 private:
  struct File {
    std::filesystem::path path;
    Hdf5File content;
    RandomAccessFile bytes;  ///< that hold the images: a link may lead to another file
    std::int64_t begin;      ///< the first image's number in the set
  };

  File const& file_of(std::int64_t image) const;
  void compare_with_library(File const& file) const;
  /// Image `row` of a file into `into`.
  void fetch(File const& file, std::int64_t row, std::span<std::byte> into) const;

  std::vector<File> files_;
  mutable PieceCache unpacked_;
};

}  // namespace stratagem
