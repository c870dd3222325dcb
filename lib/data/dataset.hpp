#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/data_config.hpp"

namespace stratagem {

/// Images as read from their files, completely in memory.
struct ImageSet {
  at::Tensor images;  ///< uint8 [n, channels, height, width]
  at::Tensor labels;  ///< int64 [n], in [0, classes)

  std::int64_t size() const { return labels.numel(); }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(images.nbytes() + labels.nbytes());
  }
};

/// A file a dataset was read from.
struct SourceFile {
  std::string path;
  std::string sha256;  ///< of the unpacked content; does not depend on how a .gz file was packed
  bool published = false;  ///< the content is the published one, bit for bit
};

struct Dataset {
  std::string name;
  std::int64_t classes = 10;
  ImageSet train, test;              ///< to train on, to evaluate
  std::vector<double> mean, stddev;  ///< per channel, of pixels scaled to [0, 1]
  bool may_flip = false;             ///< mirrored images keep their label
  std::vector<SourceFile> sources;   ///< empty for procedural data
  std::string fingerprint;           ///< 16 hex digits over all pixels and labels

  std::int64_t bytes() const { return train.bytes() + test.bytes(); }
  std::int64_t channels() const { return train.images.size(1); }
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

/// How many images there are, without reading any.
struct DatasetSize {
  std::int64_t train = 0;
  std::int64_t test = 0;
};

/// What data.subset and data.holdout make of `whole`. Error(usage) for a subset larger than the
/// dataset, and if all training images are held out.
DatasetSize used_part(DataConfig const& config, DatasetSize const& whole);

/// Reads or makes the dataset. Error(bad_data) with file, expected and actual values if anything
/// differs from the published format. Error(usage) for an unknown name, and as used_part().
Dataset load_dataset(DataConfig const& config);

}  // namespace stratagem
