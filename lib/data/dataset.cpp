#include "data/dataset.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "data/cifar/cifar10.hpp"
#include "data/idx/mnist.hpp"
#include "data/source.hpp"
#include "data/synthetic/synthetic.hpp"

namespace stratagem {
namespace {

void keep_first(std::int64_t subset, Dataset& dataset) {
  if (subset == 0) return;
  auto& train = dataset.train;
  if (subset > train.size())
    throw Error(
        ExitCode::usage,
        str("data.subset: ", subset, " is more than ", dataset.name, " has training images"),
        str("there are ", train.size()), str("take at most ", train.size(), ", or 0 for all"));
  // Copies, so that the memory of the other images is released.
  train = {train.images.narrow(0, 0, subset).clone(), train.labels.narrow(0, 0, subset).clone()};
}

std::string fingerprint(Dataset const& dataset) {
  Hash hash;
  for (auto const* set : {&dataset.train, &dataset.test})
    for (auto const& tensor : {set->images, set->labels}) {
      for (auto size : tensor.sizes()) hash.add(static_cast<std::uint64_t>(size));
      hash.add({static_cast<std::byte const*>(tensor.const_data_ptr()), tensor.nbytes()});
    }
  return hash.hex();
}

Dataset read_dataset(DatasetEntry const& entry, std::string const& root) {
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
       synthetic_train_images, synthetic_test_images}};
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

Dataset load_dataset(DataConfig const& config) {
  auto dataset = read_dataset(find_dataset(config.dataset), config.root);
  keep_first(config.subset, dataset);
  dataset.fingerprint = fingerprint(dataset);
  return dataset;
}

}  // namespace stratagem
