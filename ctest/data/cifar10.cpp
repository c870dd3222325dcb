#include "data/cifar/cifar10.hpp"

#include <ATen/ATen.h>

#include "data/files.hpp"

namespace stratagem {
namespace {

using namespace test;

constexpr std::size_t record_bytes = 3073;

std::string record(char label, char pixel) {
  return label + std::string(record_bytes - 1, pixel);
}

/// Five training files of two records each, and a test file of one.
struct TinyCifar : Scratch {
  TinyCifar() {
    for (char i = 1; i <= 5; ++i) write_file(train(i), record(i, 2 * i) + record(0, 2 * i + 1));
    write_file(test(), record(9, 100));
  }
  std::filesystem::path train(int i) const {
    return path() / ("data_batch_" + std::to_string(i) + ".bin");
  }
  std::filesystem::path test() const { return path() / "test_batch.bin"; }
};

TEST(Cifar10, ReadsRecordsInFileOrder) {
  TinyCifar folder;
  auto const dataset = read_cifar10(folder.path());
  EXPECT_EQ(dataset.train.images.sizes(), (std::vector<std::int64_t>{10, 3, 32, 32}));
  EXPECT_TRUE(
      at::equal(dataset.train.labels, at::tensor({1, 0, 2, 0, 3, 0, 4, 0, 5, 0}, at::kLong)));
  for (std::int64_t i = 0; i < 10; ++i)
    EXPECT_TRUE(dataset.train.images[i].eq(i + 2).all().item<bool>()) << i;
  EXPECT_EQ(dataset.test.size(), 1);
  EXPECT_EQ(dataset.sources.size(), 6u);
  EXPECT_FALSE(dataset.sources[0].published);
}

TEST(Cifar10, RefusesBadFiles) {
  struct Case {
    int train_file;  // 0: the test file
    std::string content;
    char const* message;
  };
  auto const good = record(1, 1);
  for (auto const& [train_file, content, message] :
       std::vector<Case>{{2, "", "at least one, found 0 bytes"},
                         {0, "", "at least one, found 0 bytes"},
                         {0, good + "x", "found 3074 bytes"},
                         {3, good.substr(1), "found 3072 bytes"},
                         {4, good, "expected 2 records, as in data_batch_1.bin, found 1"},
                         {5, good + record(10, 1),
                          "the label of record 1 is out of range (expected 0 to 9, found 10)"},
                         {0, record('\xff', 1), "found 255"}}) {
    SCOPED_TRACE(message);
    TinyCifar folder;
    auto const path = train_file > 0 ? folder.train(train_file) : folder.test();
    write_file(path, content);
    expect_bad_data([&] { read_cifar10(folder.path()); }, message);
    expect_bad_data([&] { read_cifar10(folder.path()); }, path.string());
  }
}

TEST(Cifar10, RefusesTruncationAtEveryLength) {
  TinyCifar folder;
  for (std::size_t length = 2 * record_bytes; length-- > 0;) {
    std::filesystem::resize_file(folder.train(1), length);
    // One whole record is a legal file, but not beside files of two.
    expect_bad_data([&] { read_cifar10(folder.path()); },
                    length == record_bytes ? "differ in length" : "whole number of records");
  }
}

TEST(Cifar10, NamesAMissingFile) {
  TinyCifar folder;
  std::filesystem::remove(folder.train(5));
  expect_bad_data([&] { read_cifar10(folder.path()); }, folder.train(5).string() + " is missing");
}

}  // namespace
}  // namespace stratagem
