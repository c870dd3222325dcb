#include "base/files/random_access_file.hpp"

#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/expect_bad_data.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

using test::expect_bad_data;

std::string text_at(RandomAccessFile const& file, std::int64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  file.read(offset, bytes);
  return {reinterpret_cast<char const*>(bytes.data()), size};
}

TEST(RandomAccessFile, ReadsAtAnyPlace) {
  test::Scratch folder;
  std::ofstream(folder / "data") << "0123456789";
  RandomAccessFile file(folder / "data");
  EXPECT_EQ(file.size(), 10);
  EXPECT_EQ(text_at(file, 7, 3), "789");
  EXPECT_EQ(text_at(file, 0, 2), "01");
  EXPECT_EQ(text_at(file, 10, 0), "");
  RandomAccessFile const moved(std::move(file));
  EXPECT_EQ(text_at(moved, 4, 1), "4");
}

TEST(RandomAccessFile, RefusesWhatIsNotThere) {
  test::Scratch folder;
  std::ofstream(folder / "data") << "0123456789";
  RandomAccessFile const file(folder / "data");
  expect_bad_data([&] { text_at(file, 8, 3); }, "the file ends at byte 10");
  std::filesystem::resize_file(folder / "data", 4);
  expect_bad_data([&] { text_at(file, 2, 3); }, "it had 10 bytes when it was opened");
  expect_bad_data([&] { RandomAccessFile const other(folder / "none"); }, "No such file");
  expect_bad_data([&] { RandomAccessFile const other(folder.path()); }, "not a regular file");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_bad_data([&] { RandomAccessFile const other(folder / "pipe"); }, "not a regular file");
}

}  // namespace
}  // namespace stratagem
