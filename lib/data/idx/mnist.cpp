#include "data/idx/mnist.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "data/idx/idx.hpp"
#include "data/source.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t edge = 28;  // [pixels]
constexpr std::int64_t digits = 10;

struct Published {
  char const* name;
  char const* sha256;  ///< of the unpacked file
};

constexpr Published train_images{
    "train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"};
constexpr Published train_labels{
    "train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"};
constexpr Published test_images{"t10k-images-idx3-ubyte",
                                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"};
constexpr Published test_labels{"t10k-labels-idx1-ubyte",
                                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"};

IdxFile read(fs::path const& folder, Published const& file, std::size_t dimensions) {
  auto const path = find_file(folder, {file.name, str(file.name, ".gz")});
  return read_idx(path, dimensions, file.sha256);
}

void check(IdxFile const& images, IdxFile const& labels) {
  auto const shape = images.values.sizes();
  if (shape[1] != edge || shape[2] != edge)
    throw bad_file(images.source.path, "the size of the images", str(edge, "x", edge, " pixels"),
                   str(shape[1], "x", shape[2]));
  if (labels.values.numel() != shape[0])
    throw bad_file(labels.source.path, "the number of labels",
                   str(shape[0], ", one per image of ", images.source.path),
                   str(labels.values.numel()));
  auto const* begin = labels.values.const_data_ptr<std::uint8_t>();
  auto const* end = begin + labels.values.numel();
  auto const* wrong = std::find_if(begin, end, [](std::uint8_t label) { return label >= digits; });
  if (wrong != end)
    throw bad_file(labels.source.path, str("label ", wrong - begin, " is out of range"),
                   str("0 to ", digits - 1), str(int{*wrong}));
}

SampleSet read_set(fs::path const& folder, Published const& image_file, Published const& label_file,
                   std::vector<SourceFile>& sources) {
  auto const images = read(folder, image_file, 3);
  auto const labels = read(folder, label_file, 1);
  check(images, labels);
  sources.push_back(images.source);
  sources.push_back(labels.source);
  return {images.values.unsqueeze(1), labels.values.to(at::kLong)};
}

}  // namespace

Dataset read_mnist(fs::path const& folder) {
  Dataset dataset{.name = "mnist", .classes = digits, .mean = {0.1307}, .stddev = {0.3081}};
  dataset.train = read_set(folder, train_images, train_labels, dataset.sources);
  dataset.test = read_set(folder, test_images, test_labels, dataset.sources);
  return dataset;
}

}  // namespace stratagem
