#include "data/own_data.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "data/folder/folder_images.hpp"
#include "data/hdf5/hdf5_images.hpp"
#include "data/labels.hpp"
#include "data/own_parts.hpp"
#include "data/tar/shard_images.hpp"
#include "data/tokens/own_text.hpp"

namespace stratagem {
namespace {

SampleSet set_of(std::shared_ptr<ImageStore const> store, std::vector<std::int64_t> const& labels) {
  return {.labels = at::tensor(labels, at::kLong), .store = std::move(store)};
}

void require_evaluation(DataConfig const& config, OwnParts const& parts) {
  if (!parts.val.empty() || config.holdout > 0) return;
  throw Error(ExitCode::usage, str("data.path: ", config.path, " holds nothing to evaluate"),
              "there is no val/, val*.tar or val*.h5",
              "add it, or let data.holdout keep some of the training images for that");
}

void read_folders(Dataset& dataset, OwnParts const& parts) {
  auto const classes = list_classes(parts.train.front());
  dataset.classes = std::ssize(classes);
  auto const images = std::make_shared<FolderImages>(parts.train.front(), classes);
  dataset.train = set_of(images, images->labels());
  if (parts.val.empty()) return;
  auto const others = std::make_shared<FolderImages>(parts.val.front(), classes);
  dataset.test = set_of(others, others->labels());
  if (auto const missing = others->missing(); !missing.empty())
    dataset.remarks.push_back(str(parts.val.front().string(), " has no images of ", missing.size(),
                                  " of ", classes.size(), " classes, such as ", missing.front()));
}

void read_shards(Dataset& dataset, OwnParts const& parts) {
  auto const images = std::make_shared<ShardImages>(parts.train);
  auto const labels = images->labels();
  dataset.train = set_of(images, labels);
  dataset.classes = std::ranges::max(labels) + 1;
  if (parts.val.empty()) return;
  auto const others = std::make_shared<ShardImages>(parts.val);
  dataset.test = set_of(others, others->labels());
}

void read_hdf5(Dataset& dataset, OwnParts const& parts) {
  auto const images = std::make_shared<Hdf5Images>(parts.train);
  dataset.train = set_of(images, images->labels());
  dataset.classes = images->classes();
  if (parts.val.empty()) return;
  auto const others = std::make_shared<Hdf5Images>(parts.val);
  if (others->channels() != images->channels())
    throw Error(ExitCode::bad_data,
                str(parts.val.front().string(), " has images of ", others->channels(),
                    " channel(s), and ", parts.train.front().string(), " of ", images->channels()),
                {}, "convert one of them");
  dataset.test = set_of(others, others->labels());
}

}  // namespace

Dataset open_own_data(DataConfig const& config) {
  auto const parts = find_own_parts(config.path);
  if (parts.is_text()) return open_own_text(config, parts);
  require_evaluation(config, parts);
  Dataset dataset{.name = config.dataset,
                  .mean = config.mean,
                  .stddev = config.stddev,
                  .may_flip = config.flip,
                  .remarks = parts.remarks};
  switch (parts.layout) {
    case OwnLayout::folder:
      read_folders(dataset, parts);
      break;
    case OwnLayout::tar:
      read_shards(dataset, parts);
      break;
    default:
      read_hdf5(dataset, parts);
  }
  if (!dataset.test.store) dataset.test = set_of(nullptr, {});
  require_trained_labels(dataset, "mend it, or add images of this class to those to train on");
  // Labels of folders have no other numbers.
  if (parts.layout != OwnLayout::folder && dataset.train.labels.min().item<std::int64_t>() > 0)
    dataset.remarks.push_back("no image has label 0, and labels count from 0");
  return dataset;
}

std::int64_t own_channels(std::string const& path) {
  auto const parts = find_own_parts(path);
  return parts.layout == OwnLayout::hdf5 ? hdf5_channels(parts.train.front()) : 0;
}

}  // namespace stratagem
