#include "data/own_parts.hpp"

#include <gtest/gtest.h>

#include "data/files.hpp"

namespace stratagem {
namespace {

using namespace std::string_literals;
using test::expect_bad_data;
using test::write_file;

std::string shard(std::int32_t magic = 20240520) {
  std::string bytes(reinterpret_cast<char const*>(&magic), sizeof magic);
  bytes.resize(1024);
  return bytes;
}

/// A text in which bytes of any value may be, long enough to be sampled.
std::string repeated(std::string const& text) {
  std::string all;
  while (all.size() < 200'000) all += text;
  return all;
}

/// Of a lone file with such content; else what the message says.
std::string layout_of(std::string const& content, std::string const& name = "data.bin") {
  test::Scratch const folder;
  write_file(folder / name, content);
  try {
    auto const layout = find_own_parts(folder / name).layout;
    return layout == OwnLayout::bytes ? "text" : layout == OwnLayout::shards ? "shard" : "images";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
}

TEST(OwnParts, ALoneFileIsWhatItsContentSays) {
  EXPECT_EQ(layout_of(shard(), "book.txt"), "shard");
  EXPECT_EQ(layout_of(shard(20240801)), "shard");
  EXPECT_EQ(layout_of("plain text\n", "data.h5"), "text");
  EXPECT_EQ(layout_of(""), "text") << "too short, which is another message";
  EXPECT_EQ(layout_of(repeated("Привет, мир. 你好，世界。 ¿Qué tal?\r\n")), "text");
  EXPECT_EQ(layout_of(repeated("caf\xE9 d\xE9j\xE0 vu, \x84quoted\x93\n")), "text");
  EXPECT_EQ(layout_of("ORCS are not a table, BZh no archive, PAR1 no Parquet\n"), "text");
  EXPECT_EQ(layout_of("PAR1S begins as a table does\n"), "text");
}

TEST(OwnParts, RefusesFilesOfOtherContent) {
  struct Case {
    std::string content;
    char const* words;
  };
  auto const zeros = std::string(600, '\0');
  auto tar = zeros;
  tar.replace(257, 5, "ustar");
  for (auto const& [content, words] : std::vector<Case>{
           {tar, "it is a tar archive"},
           {"PK\3\4"s + zeros, "it is a zip archive"},
           {"\x1F\x8B\x08"s + zeros, "it is packed by gzip"},
           {"\x28\xB5\x2F\xFD"s + zeros, "packed by zstd"},
           {"\x89HDF\r\n\x1A\n"s + zeros, "it is an HDF5 file"},
           {"MATLAB 7.3 MAT-file"s + zeros, "a MATLAB file, which is HDF5"},
           {"\xFF\xD8\xFF\xE0"s + zeros, "a JPEG image"},
           {"\x89PNG\r\n\x1A\n"s + zeros, "a PNG image"},
           {"\x93NUMPY"s + zeros, "a numpy array"},
           {"PAR1"s + zeros, "a Parquet table"},
           {"SQLite format 3\0"s + zeros, "an SQLite database"},
           {"\x80\4\x95"s + zeros, "a Python pickle"},
           {"\x7F"s + "ELF" + zeros, "a program"},
           {"%PDF-1.7\nwords alone", "a PDF document"},
           {"\xFF\xFEt\0e\0x\0t\0"s, "text in UTF-16"},
           {"t\0e\0x\0t\0"s, "its first bytes are 0x7400650078007400"},
           {repeated("a text at first, and then\0\1\2"s), "is not plain text"},
       })
    EXPECT_NE(layout_of(content, "book.txt").find(words), std::string::npos)
        << words << "\n"
        << layout_of(content, "book.txt");
}

class DataFolder {
 public:
  void put(std::string const& name, std::string const& content = "x") {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file(folder_ / name, content);
  }
  OwnParts parts() const { return find_own_parts(folder_.path()); }
  void expect_refusal(char const* words) {
    expect_bad_data([this] { parts(); }, words);
  }

  void remove(std::string const& name) { std::filesystem::remove_all(folder_ / name); }

 private:
  test::Scratch folder_;
};

TEST(OwnParts, AListBesideImagesIsTold) {
  DataFolder folder;
  folder.put("train/a/1.png");
  folder.put("val/a/1.png");
  for (auto const* name : {"train_test_split.txt", "train.txt", "val.txt", "train.bin"})
    folder.put(name);
  auto const found = folder.parts();
  EXPECT_EQ(found.layout, OwnLayout::folder);
  EXPECT_EQ(found.val.front().filename(), "val");
  std::string told;
  for (auto const& remark : found.remarks) told += remark + "\n";
  for (auto const* words : {"train.txt is not read: it is taken for a list of the images",
                            "train.bin is not read: it holds no tokens", "val.txt is not read"})
    EXPECT_NE(told.find(words), std::string::npos) << told;
}

TEST(OwnParts, AListBesideShardsOrArraysIsTold) {
  DataFolder folder;
  folder.put("train.txt");
  folder.put("train-0.tar");
  EXPECT_EQ(folder.parts().layout, OwnLayout::tar);
  folder.remove("train-0.tar");
  folder.put("train.h5");
  EXPECT_EQ(folder.parts().layout, OwnLayout::hdf5);
  EXPECT_EQ(folder.parts().remarks.size(), 1U);
}

TEST(OwnParts, AFolderWithoutClassesIsNoLayoutBesideAnother) {
  DataFolder folder;
  folder.put("train/notes.md");
  folder.put("train.txt", "a book");
  EXPECT_EQ(folder.parts().layout, OwnLayout::bytes);
  EXPECT_NE(folder.parts().remarks.at(0).find("holds no folders of classes"), std::string::npos);
  folder.remove("train.txt");
  EXPECT_EQ(folder.parts().layout, OwnLayout::folder)
      << "alone it is one, and named as what is wrong";
}

TEST(OwnParts, TwoTrueLayoutsAreRefused) {
  DataFolder folder;
  folder.put("train/a/1.png");
  folder.put("train.bin", shard());
  folder.expect_refusal("holds train and train.bin");
  folder.remove("train");
  folder.put("train.txt");
  folder.expect_refusal("holds train.txt and train.bin");
}

TEST(OwnParts, AWordInTheNameTellsThePart) {
  DataFolder folder;
  for (auto const* name : {"fineweb_train_000001.bin", "fineweb_train_000002.bin",
                           "fineweb_val_000000.bin", "retrained.bin", "evaluated.bin"})
    folder.put(name, shard());
  EXPECT_EQ(folder.parts().layout, OwnLayout::shards);
  EXPECT_EQ(folder.parts().train.size(), 2U);
  ASSERT_EQ(folder.parts().val.size(), 1U);
  EXPECT_EQ(folder.parts().val.front().filename(), "fineweb_val_000000.bin");
  folder.put("train_0.bin", shard());
  EXPECT_EQ(folder.parts().train.size(), 1U) << "names that begin so come first";
}

TEST(OwnParts, TellsWhatItHoldsInstead) {
  DataFolder folder;
  folder.put("a.parquet");
  folder.put("b.csv");
  folder.expect_refusal("holds no train/, train*.tar or train*.h5 (it holds a.parquet, b.csv)");
  folder.put("train.txt", "\x1F\x8B\x08"s.append(600, '\0'));
  folder.expect_refusal(
      "train.txt is not plain text (its first bytes say that it is packed by gzip)");
}

}  // namespace
}  // namespace stratagem
