#include "data/folder/folder_images.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "data/files.hpp"
#include "data/image_files.hpp"

namespace stratagem {
namespace {

using test::expect_bad_data;
using test::numbered_pixels;
using test::write_classes;
using test::write_file;
using test::write_png;

constexpr std::uint32_t edge = 6;
constexpr Region whole{0, 0, edge, edge};

std::vector<std::uint8_t> read(FolderImages const& images, std::int64_t image,
                               Region const& region = whole) {
  ReadBuffer buffer;
  images.read(
      image, [&](ImageSize const&) { return region; }, {1, 1}, 3, buffer);
  return buffer.pixels.values;
}

TEST(FolderImages, ReadsEveryImageWithItsLabel) {
  test::Scratch folder;
  write_classes(folder.path(), {"tulip", "Rose", "lily"}, 4, edge);
  write_file(folder / "Rose/.DS_Store", "hidden");
  auto const classes = list_classes(folder.path());
  EXPECT_EQ(classes, (std::vector<std::string>{"Rose", "lily", "tulip"}));
  FolderImages const images(folder.path(), classes);
  ASSERT_EQ(images.size(), 12);
  EXPECT_TRUE(images.missing().empty());
  EXPECT_TRUE(images.runs().parts.empty());
  std::set<int> seen;
  for (std::int64_t i = 0; i < 12; ++i) {
    std::filesystem::path const path = images.name(i);
    int const number = std::stoi(path.stem().string());
    seen.insert(number);
    EXPECT_EQ(read(images, i), numbered_pixels(edge, 3, number)) << path;
    auto const label = images.labels()[static_cast<std::size_t>(i)];
    auto const& name = classes[static_cast<std::size_t>(label)];
    EXPECT_EQ(path.parent_path().filename(), name);
    EXPECT_EQ(images.identity(i), name + "/" + path.filename().string());
  }
  EXPECT_EQ(seen.size(), 12u);
}

TEST(FolderImages, OrderIsMixedAndStaysWhenImagesAreAdded) {
  test::Scratch folder;
  write_classes(folder.path(), {"a", "b"}, 50, edge);
  auto const names = [&] {
    FolderImages const images(folder.path(), {"a", "b"});
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < images.size(); ++i) all.push_back(images.identity(i));
    return all;
  };
  auto const before = names();
  auto const of_a = std::count_if(before.begin(), before.begin() + 50,
                                  [](auto const& name) { return name.starts_with("a/"); });
  EXPECT_NEAR(static_cast<double>(of_a), 25, 5 * 2.5);
  write_png(folder / "a/new.png", edge, edge, numbered_pixels(edge, 3, 1));
  auto after = names();
  std::erase(after, "a/new.png");
  EXPECT_EQ(after, before);
}

TEST(FolderImages, NotEveryClassNeedsImages) {
  test::Scratch folder;
  write_classes(folder.path(), {"b"}, 2, edge);
  FolderImages const images(folder.path(), {"a", "b", "c"});
  EXPECT_EQ(images.labels(), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(images.missing(), (std::vector<std::string>{"a", "c"}));
}

TEST(FolderImages, RefusesWhatDoesNotBelongThere) {
  auto const refuse = [](auto const& add, char const* fragment) {
    test::Scratch folder;
    write_classes(folder.path(), {"rose"}, 1, edge);
    add(folder);
    expect_bad_data([&] { FolderImages const images(folder.path(), {"rose", "tulip"}); }, fragment);
  };
  refuse([](auto& f) { write_file(f / "readme.txt", "x"); }, "readme.txt is not a folder");
  refuse([](auto& f) { write_file(f / "rose/x.webp", "x"); },
         "x.webp is neither .jpg, .jpeg nor .png; convert it");
  refuse([](auto& f) { std::filesystem::create_directory(f / "rose/more"); },
         "is a folder within a class");
  refuse([](auto& f) { std::filesystem::create_directory(f / "tulip"); }, "holds no image");
  refuse([](auto& f) { write_classes(f.path(), {"rosa"}, 1, edge); },
         "rosa is of a class that is not among those to train on; rename it (did you mean "
         "\"rose\"?), or remove it");
  refuse([](auto& f) { write_file(f / "rose/\xff.png", "x"); },
         "rose/\\xff.png has a name that is not UTF-8");
  refuse([](auto& f) { std::filesystem::create_symlink("gone.png", f / "rose/linked.png"); },
         "rose/linked.png is a link to a file that is missing");
  refuse([](auto& f) { std::filesystem::create_symlink("loop.jpg", f / "rose/loop.jpg"); },
         "rose/loop.jpg is a link to a file that is missing");
  refuse([](auto& f) { std::filesystem::create_symlink("loop", f / "loop"); },
         "loop is not a folder");
  test::Scratch empty;
  expect_bad_data([&] { list_classes(empty.path()); }, "holds no folders of classes");
  expect_bad_data([&] { list_classes(empty / "none"); }, "cannot list");
}

TEST(FolderImages, DamagedImagesAreNamedWhenTheyAreRead) {
  test::Scratch folder;
  write_classes(folder.path(), {"a"}, 1, edge);
  FolderImages const images(folder.path(), {"a"});
  auto const path = folder / "a/0.png";
  auto const content = test::file_content(path);
  write_file(path, content.substr(0, content.size() / 2));
  expect_bad_data([&] { read(images, 0); }, path.string());
  write_file(path, "");
  expect_bad_data([&] { read(images, 0); }, path.string());
  std::filesystem::remove(path);
  expect_bad_data([&] { read(images, 0); }, "cannot open " + path.string());
}

}  // namespace
}  // namespace stratagem
