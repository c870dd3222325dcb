#include "data/idx/idx.hpp"

#include <ATen/ATen.h>

#include "data/files.hpp"
#include "data/idx/mnist.hpp"

namespace stratagem {
namespace {

using namespace test;

constexpr std::size_t image_bytes = 28 * 28;

std::string const good_images = idx_content({3, 28, 28}, std::string(3 * image_bytes, '\x07'));
std::string const good_labels = idx_content({3}, std::string("\x01\x09\x00", 3));

/// A folder with three training and three test images.
struct TinyMnist : Scratch {
  TinyMnist() {
    for (auto const* part : {"train", "t10k"}) {
      write_file(path() / (std::string(part) + "-images-idx3-ubyte"), good_images);
      write_file(path() / (std::string(part) + "-labels-idx1-ubyte"), good_labels);
    }
  }
  std::filesystem::path images() const { return path() / "train-images-idx3-ubyte"; }
  std::filesystem::path labels() const { return path() / "train-labels-idx1-ubyte"; }
};

TEST(Idx, ReadsPlainAndCompressedAlike) {
  TinyMnist folder;
  auto const plain = read_mnist(folder.path());
  std::filesystem::remove(folder.images());
  write_gzip(folder.path() / "train-images-idx3-ubyte.gz", good_images);
  auto const packed = read_mnist(folder.path());
  EXPECT_EQ(plain.train.images.sizes(), (std::vector<std::int64_t>{3, 1, 28, 28}));
  EXPECT_TRUE(at::equal(plain.train.images, packed.train.images));
  EXPECT_TRUE(at::equal(plain.train.labels, at::tensor({1, 9, 0}, at::kLong)));
  EXPECT_EQ(plain.train.images.sum().item<std::int64_t>(), 7 * 3 * image_bytes);
  EXPECT_EQ(plain.sources[0].sha256, packed.sources[0].sha256);
  EXPECT_FALSE(plain.sources[0].published);
}

struct BadFile {
  char const* name;
  char const* file;
  std::string content;
  char const* message;
};

std::vector<BadFile> bad_files() {
  auto altered = [](std::string content, std::size_t at, char byte) {
    content[at] = byte;
    return content;
  };
  constexpr auto* images = "train-images-idx3-ubyte";
  constexpr auto* labels = "t10k-labels-idx1-ubyte";
  return {
      {"empty", images, "", "expected 16 bytes, found 0"},
      {"magic", images, altered(good_images, 0, 1), "found 0x01000803"},
      {"signed", images, altered(good_images, 2, 0x09),
       "magic number 0x00000803, found 0x00000903"},
      {"dimensions", labels, good_images, "expected magic number 0x00000801, found 0x00000803"},
      {"extra", images, good_images + "x", "expected 2368 bytes, found 2369"},
      {"no images", images, idx_content({0, 28, 28}, ""), "size 1 of the IDX header"},
      {"no width", images, idx_content({3, 28, 0}, ""), "size 3 of the IDX header"},
      {"overflow", images, idx_content({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x"),
       "more than 2^63"},
      {"wraps to 0", images, idx_content({1u << 31, 1u << 31, 4}, ""), "more than 2^63"},
      {"huge", images, idx_content({0xFFFFFFFF, 28, 28}, "x"), "expected 3367254359296 bytes"},
      {"not 28x28", images, idx_content({3, 14, 56}, std::string(3 * image_bytes, 0)),
       "found 14x56"},
      {"label", labels, idx_content({3}, "\x01\x0a\x02"), "label 1 is out of range"},
      {"fewer labels", labels, idx_content({2}, "\x01\x02"), "expected 3, one per image"},
      {"more labels", labels, idx_content({4}, "\x01\x02\x03\x04"), "found 4"},
  };
}

TEST(Idx, RefusesBadFiles) {
  for (auto const& bad : bad_files()) {
    SCOPED_TRACE(bad.name);
    TinyMnist folder;
    auto const path = folder.path() / bad.file;
    write_file(path, bad.content);
    auto read = [&] { read_mnist(folder.path()); };
    expect_bad_data(read, bad.message);
    expect_bad_data(read, path.string());
    expect_bad_data(read, "modules/fetch-data.sh");
    std::filesystem::remove(path);
    write_gzip(path.string() + ".gz", bad.content);
    expect_bad_data(read, path.string() + ".gz");
  }
}

TEST(Idx, RefusesTruncationAtEveryLength) {
  Scratch folder;
  auto const path = folder.path() / "labels";
  for (std::size_t length = 0; length < good_labels.size(); ++length) {
    write_file(path, good_labels.substr(0, length));
    expect_bad_data([&] { read_idx(path, 1, ""); }, "expected");
  }
  auto const packed = folder.path() / "labels.gz";
  write_gzip(packed, good_labels);
  auto const whole = file_content(packed);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(packed, whole.substr(0, length));
    expect_bad_data([&] { read_idx(packed, 1, ""); }, "the gzip file ends early");
  }
}

TEST(Idx, DamageToAGzipFileNeverChangesItsContent) {
  Scratch folder;
  auto const path = folder.path() / "labels.gz";
  write_gzip(path, good_labels);
  auto const whole = file_content(path);
  auto const good = read_idx(path, 1, "").values;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file(path, damaged);
    try {
      EXPECT_TRUE(at::equal(read_idx(path, 1, "").values, good)) << "byte " << at;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
      ++refused;
    }
  }
  // Six header bytes tell time and system of the packer, and the last bits of the stream are
  // unused.
  EXPECT_GE(refused, whole.size() - 7);
}

TEST(Idx, RefusesWhatFollowsOrExceedsAGzipStream) {
  Scratch folder;
  auto const path = folder.path() / "labels.gz";
  auto read = [&] { read_idx(path, 1, ""); };
  write_gzip(path, good_labels);
  write_file(path, file_content(path) + "tail");
  expect_bad_data(read, "bytes follow the gzip stream (expected none, found 4)");
  write_gzip(path, good_labels + "x");
  expect_bad_data(read, "more than its IDX header promises");
  write_gzip(path, good_labels + std::string(1 << 24, '\0'));  // 16 MiB that must not be unpacked
  expect_bad_data(read, "more than its IDX header promises");
  write_gzip(path, idx_content({0x7FFFFFFF}, "xyz"));
  expect_bad_data(read, "too short for what its IDX header promises");
  write_gzip(path, idx_content({1000}, "xyz"));
  expect_bad_data(read, "expected 1008 bytes, found 11");
}

/// As long as a stream of these promises could be, and of which a thousandth is there.
TEST(Idx, RefusesABombBeforeItUnpacksIt) {
  Scratch folder;
  auto const path = folder.path() / "labels.gz";
  std::string noise(3 << 20, '\0');
  std::uint32_t state = 1;
  for (auto& byte : noise) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  write_gzip(path, idx_content({0x7FFFFFFF}, noise));
  expect_bad_data([&] { read_idx(path, 1, ""); },
                  "too large for a packed one (expected at most 1073741824 bytes once unpacked, "
                  "found 2147483655)");
}

TEST(Idx, NamesAMissingFile) {
  TinyMnist folder;
  std::filesystem::remove(folder.labels());
  expect_bad_data([&] { read_mnist(folder.path()); }, folder.labels().string() + " is missing");
  std::filesystem::create_directory(folder.labels());
  expect_bad_data([&] { read_mnist(folder.path()); }, "not a regular file");
}

}  // namespace
}  // namespace stratagem
