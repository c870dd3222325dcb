#include "data/cifar/cifar10.hpp"

#include <cstring>

#include <ATen/ATen.h>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "data/source.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t channels = 3, edge = 32, classes = 10;
constexpr std::int64_t image_bytes = channels * edge * edge;
constexpr std::int64_t record_bytes = 1 + image_bytes;

struct Published {
  char const* name;
  char const* sha256;
};

constexpr Published train_files[]{
    {"data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"}};
constexpr Published test_file{"test_batch.bin",
                              "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"};

/// Labels and images in `content`, in file order.
SampleSet split_records(fs::path const& path, std::span<std::byte const> content) {
  auto const bytes = static_cast<std::int64_t>(content.size());
  if (bytes == 0 || bytes % record_bytes != 0)
    throw bad_file(path, "the file's length",
                   str("a whole number of records of ", record_bytes, " bytes, at least one"),
                   str(bytes, " bytes"));
  auto const count = bytes / record_bytes;
  SampleSet set{at::empty({count, channels, edge, edge}, at::kByte), at::empty({count}, at::kLong)};
  auto* pixels = set.images.mutable_data_ptr<std::uint8_t>();
  auto* labels = set.labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    auto const* record = content.data() + i * record_bytes;
    labels[i] = std::to_integer<std::int64_t>(record[0]);
    if (labels[i] >= classes)
      throw bad_file(path, str("the label of record ", i, " is out of range"),
                     str("0 to ", classes - 1), str(labels[i]));
    std::memcpy(pixels + i * image_bytes, record + 1, image_bytes);
  }
  return set;
}

SampleSet read_batch(fs::path const& folder, Published const& file,
                     std::vector<SourceFile>& sources) {
  auto const path = find_file(folder, {file.name});
  auto const content = read_bytes(path, ExitCode::bad_data, most_source_bytes);
  auto set = split_records(path, content);
  sources.push_back(identify(path, content, file.sha256));
  return set;
}

SampleSet read_train(fs::path const& folder, std::vector<SourceFile>& sources) {
  std::vector<at::Tensor> images, labels;
  for (auto const& file : train_files) {
    auto const batch = read_batch(folder, file, sources);
    if (!labels.empty() && batch.size() != labels.front().numel())
      throw bad_file(sources.back().path, "the training files differ in length",
                     str(labels.front().numel(), " records, as in ", train_files[0].name),
                     str(batch.size()));
    images.push_back(batch.images);
    labels.push_back(batch.labels);
  }
  return {at::cat(images), at::cat(labels)};
}

}  // namespace

Dataset read_cifar10(fs::path const& folder) {
  Dataset dataset{.name = "cifar10",
                  .classes = classes,
                  .mean = {0.4914, 0.4822, 0.4465},
                  .stddev = {0.2470, 0.2435, 0.2616},
                  .may_flip = true};
  dataset.train = read_train(folder, dataset.sources);
  dataset.test = read_batch(folder, test_file, dataset.sources);
  return dataset;
}

}  // namespace stratagem
