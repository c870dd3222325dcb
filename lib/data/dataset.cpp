#include "data/dataset.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "data/cifar/cifar10.hpp"
#include "data/fingerprint.hpp"
#include "data/idx/mnist.hpp"
#include "data/labels.hpp"
#include "data/own_data.hpp"
#include "data/own_parts.hpp"
#include "data/source.hpp"
#include "data/synthetic/synthetic.hpp"

namespace stratagem {
namespace {

SampleSet part_of(SampleSet const& set, std::int64_t first, std::int64_t count) {
  if (set.text)
    return {.first_stored = set.first_stored + first, .text = set.text, .sequences = count};
  return {.images = set.store ? at::Tensor() : set.images.narrow(0, first, count),
          .labels = set.labels.narrow(0, first, count),
          .store = set.store,
          .first_stored = set.first_stored + first};
}

void keep_used_part(DataConfig const& config, Dataset& dataset) {
  auto& train = dataset.train;
  auto const used = used_part(config, dataset.size());
  if (config.subset > 0) {
    train = part_of(train, 0, config.subset);
    // A copy, so that the memory of the other images is released.
    if (!train.store && !train.text) train = {train.images.clone(), train.labels.clone()};
  }
  if (config.holdout > 0) dataset.test = part_of(train, used.train, used.test);
  train = part_of(train, 0, used.train);
}

Dataset read_dataset(DatasetEntry const& entry, DataConfig const& config) {
  auto const& root = config.root;
  if (entry.vocabulary > 0) return make_synthetic_text(config.seq_len);
  if (entry.name == "mnist") return read_mnist(dataset_folder(root, entry.folder));
  if (entry.name == "cifar10") return read_cifar10(dataset_folder(root, entry.folder));
  if (entry.name == "synthetic-digits") return make_synthetic_digits();
  return make_synthetic_shapes();
}

}  // namespace

std::vector<DatasetEntry> const& dataset_catalogue() {
  static std::vector<DatasetEntry> const catalogue{
      {"mnist", "handwritten digits, IDX files, gzip or not", "mnist", 1, 28, 60000, 10000},
      {"cifar10", "small colour photographs, binary version", "cifar-10-batches-bin", 3, 32, 50000,
       10000},
      {"synthetic-digits", "procedural digits, no files", "", 1, 28, synthetic_train_images,
       synthetic_test_images},
      {"synthetic-shapes", "procedural coloured figures, no files", "", 3, 32,
       synthetic_train_images, synthetic_test_images},
      {"synthetic-text", "procedural text of 16 symbols, no files", "", 0, 0, 0, 0,
       synthetic_text_symbols}};
  return catalogue;
}

DatasetEntry const& find_dataset(std::string const& name) {
  std::vector<std::string> names;
  for (auto const& entry : dataset_catalogue()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(ExitCode::usage, str("unknown dataset \"", name, "\"", did_you_mean(name, names)), {},
              str("known are ", join(names, ", ")));
}

DatasetSize used_part(DataConfig const& config, DatasetSize const& whole) {
  if (config.subset > whole.train)
    throw Error(ExitCode::usage,
                str("data.subset: ", config.subset, " is more than ", config.dataset,
                    " has training images"),
                str("there are ", whole.train),
                str("take at most ", whole.train, ", or 0 for all"));
  auto const images = config.subset > 0 ? config.subset : whole.train;
  if (config.holdout == 0) return {images, whole.test, whole.classes};
  if (config.holdout >= images)
    throw Error(ExitCode::usage,
                str("data.holdout: ", config.holdout, " of ", images, " training images"),
                "none are left to train on", str("take at most ", images - 1, ", or 0 for none"));
  return {images - config.holdout, config.holdout, whole.classes};
}

Runs SampleSet::runs() const {
  if (!store) return {};
  auto const whole = store->runs();
  Runs inside{.window = whole.window};
  for (auto const& [begin, end] : whole.parts) {
    IndexRange const part{std::max<std::int64_t>(begin - first_stored, 0),
                          std::min(end - first_stored, size())};
    if (part.size() > 0) inside.parts.push_back(part);
  }
  return inside;
}

bool is_text(DataConfig const& config) {
  return config.path.empty() ? find_dataset(config.dataset).vocabulary > 0
                             : find_own_parts(config.path).is_text();
}

DatasetSize whole_size(DataConfig const& config) {
  if (!config.path.empty()) return open_own_data(config).size();
  auto const& entry = find_dataset(config.dataset);
  if (entry.vocabulary > 0)
    return {sequences_in(synthetic_train_tokens, config.seq_len),
            sequences_in(synthetic_test_tokens, config.seq_len), entry.vocabulary};
  if (entry.folder.empty()) return {entry.train_images, entry.test_images};
  // Files may have more images than the published ones.
  return {std::max(entry.train_images, config.subset), entry.test_images};
}

std::int64_t channels_of(DataConfig const& config) {
  if (is_text(config)) return 0;
  return config.path.empty() ? find_dataset(config.dataset).channels : own_channels(config.path);
}

std::int64_t least_input(DataConfig const& config) {
  return config.path.empty() ? find_dataset(config.dataset).image_size : 1;
}

Dataset load_dataset(DataConfig const& config) {
  auto dataset = config.path.empty() ? read_dataset(find_dataset(config.dataset), config)
                                     : open_own_data(config);
  if (config.path.empty()) require_trained_labels(dataset, "give the published files");
  keep_used_part(config, dataset);
  if (config.holdout > 0)
    require_trained_labels(dataset, "put the images into random order, or take another holdout");
  dataset.fingerprint = fingerprint(dataset);
  return dataset;
}

}  // namespace stratagem
