#include "data/own_data.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/files/list_folder.hpp"
#include "base/text.hpp"
#include "data/folder/folder_images.hpp"
#include "data/hdf5/hdf5_images.hpp"
#include "data/tar/shard_images.hpp"
#include "data/tokens/own_text.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

enum class Layout { folder, tar, hdf5 };

constexpr char layouts[] =
    "a data folder holds train/CLASS/*.jpg (or .png), train*.tar or train*.h5; or text: train*.txt "
    "or train*.bin; and the same of val";

/// What of a data folder is one of its two parts.
struct Part {
  Layout layout;
  std::vector<fs::path> paths;  ///< the folder, or the files in order of their names
};

/// Empty if `root` has nothing whose name begins with `prefix`. Error(bad_data) if there are
/// several layouts of it.
std::optional<Part> find_part(fs::path const& root, std::string const& prefix) {
  std::vector<Part> found;
  std::error_code failed;
  if (fs::is_directory(root / prefix, failed)) found.push_back({Layout::folder, {root / prefix}});
  if (auto files = files_named(root, prefix, {".tar"}); !files.empty())
    found.push_back({Layout::tar, std::move(files)});
  if (auto files = files_named(root, prefix, {".h5", ".hdf5"}); !files.empty())
    found.push_back({Layout::hdf5, std::move(files)});
  if (found.size() > 1)
    throw Error(ExitCode::bad_data,
                str(root.string(), " holds ", found[0].paths.front().filename().string(), " and ",
                    found[1].paths.front().filename().string()),
                "only one of them can be what to read", "move one of them elsewhere");
  if (found.empty()) return std::nullopt;
  return found.front();
}

Part training_part(std::string const& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed))
    throw Error(
        ExitCode::bad_data,
        str("data.path: ", path, fs::exists(path, failed) ? " is not a folder" : " is missing"),
        failed ? failed.message() : "", layouts);
  auto part = find_part(path, "train");
  if (!part)
    throw Error(ExitCode::bad_data,
                str("data.path: ", path, " holds no train/, train*.tar or train*.h5"), {}, layouts);
  return *std::move(part);
}

SampleSet set_of(std::shared_ptr<ImageStore const> store, std::vector<std::int64_t> const& labels) {
  return {.labels = at::tensor(labels, at::kLong), .store = std::move(store)};
}

/// Without it, data.holdout must say what to evaluate.
std::optional<Part> evaluation_part(DataConfig const& config, Layout layout) {
  auto part = find_part(config.path, "val");
  if (!part && config.holdout == 0)
    throw Error(ExitCode::usage, str("data.path: ", config.path, " holds nothing to evaluate"),
                "there is no val/, val*.tar or val*.h5",
                "add it, or let data.holdout keep some of the training images for that");
  if (part && part->layout != layout)
    throw Error(ExitCode::bad_data,
                str(config.path, ": ", part->paths.front().filename().string(),
                    " is not of the kind of the training images"),
                {}, layouts);
  return part;
}

void read_folders(Dataset& dataset, Part const& train, std::optional<Part> const& val) {
  auto const classes = list_classes(train.paths.front());
  dataset.classes = std::ssize(classes);
  auto const images = std::make_shared<FolderImages>(train.paths.front(), classes);
  dataset.train = set_of(images, images->labels());
  if (!val) return;
  auto const others = std::make_shared<FolderImages>(val->paths.front(), classes);
  dataset.test = set_of(others, others->labels());
  if (auto const missing = others->missing(); !missing.empty())
    dataset.remarks.push_back(str(val->paths.front().string(), " has no images of ", missing.size(),
                                  " of ", classes.size(), " classes, such as ", missing.front()));
}

void read_shards(Dataset& dataset, Part const& train, std::optional<Part> const& val) {
  auto const images = std::make_shared<ShardImages>(train.paths);
  auto const labels = images->labels();
  dataset.train = set_of(images, labels);
  dataset.classes = std::ranges::max(labels) + 1;
  if (!val) return;
  auto const others = std::make_shared<ShardImages>(val->paths);
  dataset.test = set_of(others, others->labels());
}

void read_hdf5(Dataset& dataset, Part const& train, std::optional<Part> const& val) {
  auto const images = std::make_shared<Hdf5Images>(train.paths);
  dataset.train = set_of(images, images->labels());
  dataset.classes = images->classes();
  if (!val) return;
  auto const others = std::make_shared<Hdf5Images>(val->paths);
  if (others->channels() != images->channels())
    throw Error(ExitCode::bad_data,
                str(val->paths.front().string(), " has images of ", others->channels(),
                    " channel(s), and ", train.paths.front().string(), " of ", images->channels()),
                {}, "convert one of them");
  dataset.test = set_of(others, others->labels());
}

/// A label that no image to train on has can only be a mistake.
void check_labels(Dataset const& dataset) {
  auto const& test = dataset.test;
  if (!test.store || test.size() == 0) return;
  auto const most = test.labels.argmax().item<std::int64_t>();
  auto const label = test.labels[most].item<std::int64_t>();
  if (label >= dataset.classes)
    throw Error(ExitCode::bad_data, str(test.store->name(most), " has label ", label),
                str("those to train on have 0 to ", dataset.classes - 1),
                "mend its label, or add images of this class to those to train on");
}

}  // namespace

Dataset open_own_data(DataConfig const& config) {
  if (is_text(config.path)) return open_own_text(config);
  auto const train = training_part(config.path);
  auto const val = evaluation_part(config, train.layout);
  Dataset dataset{.name = config.dataset,
                  .mean = config.mean,
                  .stddev = config.stddev,
                  .may_flip = config.flip};
  switch (train.layout) {
    case Layout::folder:
      read_folders(dataset, train, val);
      break;
    case Layout::tar:
      read_shards(dataset, train, val);
      break;
    case Layout::hdf5:
      read_hdf5(dataset, train, val);
  }
  if (!dataset.test.store) dataset.test = set_of(nullptr, {});
  check_labels(dataset);
  return dataset;
}

std::int64_t own_channels(std::string const& path) {
  auto const train = training_part(path);
  return train.layout == Layout::hdf5 ? hdf5_channels(train.paths.front()) : 0;
}

}  // namespace stratagem
