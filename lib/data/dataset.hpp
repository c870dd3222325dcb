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
#include "data/tokens/sequences.hpp"

namespace stratagem {

/// Images of one size completely in memory, or any that stay on disk, and their labels; or text.
struct SampleSet {
  at::Tensor images;  ///< uint8 [n, channels, height, width]; undefined for images on disk
  at::Tensor labels;  ///< int64 [n], in [0, classes)
  std::shared_ptr<ImageStore const> store = {};  ///< of images on disk
  std::int64_t first_stored = 0;  ///< which image of the store, or sequence, is the set's first
  std::shared_ptr<Sequences const> text = {};  ///< instead of images and labels
  std::int64_t sequences = 0;                  ///< of text, that are in the set

  std::int64_t size() const { return text ? sequences : labels.numel(); }
  /// In memory.
  std::int64_t bytes() const {
    if (text) return 0;
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
  SampleSet train, test;             ///< to train on, to evaluate
  std::vector<double> mean, stddev;  ///< per channel, of pixels in [0, 1]; empty: the usual ones
  bool may_flip = false;             ///< mirrored images keep their label
  std::vector<SourceFile> sources;   ///< empty for procedural data, images on disk and text
  std::string fingerprint;           ///< see fingerprint()
  std::vector<std::string> remarks = {};  ///< what is odd about the data, for people

  std::int64_t bytes() const { return train.bytes() + test.bytes(); }
  DatasetSize size() const { return {train.size(), test.size(), classes}; }
  /// Of every image; 0: as many as are asked for, and of text.
  std::int64_t channels() const {
    if (train.text) return 0;
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
  std::int64_t vocabulary = 0;  ///< of text [tokens]; 0: images
};

std::vector<DatasetEntry> const& dataset_catalogue();

/// Error(usage) for an unknown name, with the nearest known name.
DatasetEntry const& find_dataset(std::string const& name);

/// What the catalogue says of the dataset, or the files of the user's own. Error(usage) for an
/// unknown name, Error(bad_data) as load_dataset().
DatasetSize whole_size(DataConfig const& config);

/// Whether it is text and not images. Error(usage) for an unknown name.
bool is_text(DataConfig const& config);

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
