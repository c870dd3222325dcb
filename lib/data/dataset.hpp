#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/data_config.hpp"
#include "data/images/image_store.hpp"
#include "data/pixel_tables.hpp"
#include "data/sampler.hpp"

namespace stratagem {

/// Images and their labels: images of one size completely in memory, or any that stay on disk.
struct ImageSet {
  at::Tensor images;  ///< uint8 [n, channels, height, width]; undefined for images on disk
  at::Tensor labels;  ///< int64 [n], in [0, classes)
  std::shared_ptr<ImageStore const> store = {};  ///< of images on disk
  std::int64_t first_stored = 0;                 ///< which image of the store is the set's first

  std::int64_t size() const { return labels.numel(); }
  /// In memory.
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((store ? 0 : images.nbytes()) + labels.nbytes());
  }
  /// Which images are best read together.
  Runs runs() const;
};

/// A file a dataset was read from.
struct SourceFile {
  std::string path;
  std::string sha256;  ///< of the unpacked content; does not depend on how a .gz file was packed
  bool published = false;  ///< the content is the published one, bit for bit
};

/// What is known of a dataset without reading any image.
struct DatasetSize {
  std::int64_t train = 0;
  std::int64_t test = 0;
  std::int64_t classes = 10;
};

struct Dataset {
  std::string name;
  std::int64_t classes = 10;
  ImageSet train, test;              ///< to train on, to evaluate
  std::vector<double> mean, stddev;  ///< per channel, of pixels in [0, 1]; empty: the usual ones
  bool may_flip = false;             ///< mirrored images keep their label
  std::vector<SourceFile> sources;   ///< empty for procedural data and images on disk
  /// 16 hex digits over all pixels and labels; of images on disk over their names and labels.
  std::string fingerprint;
  std::vector<std::string> remarks = {};  ///< what is odd about the data, for people

  std::int64_t bytes() const { return train.bytes() + test.bytes(); }
  DatasetSize size() const { return {train.size(), test.size(), classes}; }
  /// Of every image; 0: as many as are asked for.
  std::int64_t channels() const {
    return train.store ? train.store->channels() : train.images.size(1);
  }
  /// What pixels are normalised by for an input of `channels`.
  PixelStatistics statistics(std::int64_t channels) const {
    return mean.empty() ? imagenet_statistics(channels) : PixelStatistics{mean, stddev};
  }
  /// Of images in memory.
  std::int64_t image_size() const { return train.images.size(2); }
};

/// One dataset that can be selected by name.
struct DatasetEntry {
  std::string name;
  std::string description;
  std::string folder;  ///< under data.root; empty for procedural data
  std::int64_t channels;
  std::int64_t image_size;    ///< height and width [pixels]
  std::int64_t train_images;  ///< of the published files
  std::int64_t test_images;
};

std::vector<DatasetEntry> const& dataset_catalogue();

/// Error(usage) for an unknown name, with the nearest known name.
DatasetEntry const& find_dataset(std::string const& name);

/// What the catalogue says of the dataset, or the files of the user's own. Error(usage) for an
/// unknown name, Error(bad_data) as load_dataset().
DatasetSize whole_size(DataConfig const& config);

/// Channels of every image; 0: as many as are asked for. Errors as whole_size().
std::int64_t channels_of(DataConfig const& config);

/// The least input for its images [pixels].
std::int64_t least_input(DataConfig const& config);

/// What data.subset and data.holdout make of `whole`. Error(usage) for a subset larger than the
/// dataset, and if all training images are held out.
DatasetSize used_part(DataConfig const& config, DatasetSize const& whole);

/// Reads or makes the dataset; of the user's own, see open_own_data(). Error(bad_data) with file,
/// expected and actual values if anything differs from the published format. Error(usage) for an
/// unknown name, and as used_part().
Dataset load_dataset(DataConfig const& config);

}  // namespace stratagem
