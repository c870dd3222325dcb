#include "data/own_data.hpp"

#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/batch.hpp"
#include "data/files.hpp"
#include "data/folder/folder_images.hpp"
#include "data/hdf5_file.hpp"
#include "data/image_files.hpp"
#include "data/loader.hpp"
#include "data/tar_files.hpp"

namespace stratagem {
namespace {

using test::expect_bad_data;
using test::file_content;
using test::numbered_pixels;
using test::tar_member;
using test::write_classes;
using test::write_file;

constexpr std::uint32_t edge = 12;

/// The images of a part in the folder layout, as one shard.
void write_shard(std::filesystem::path const& path, std::filesystem::path const& part,
                 std::vector<std::string> const& classes) {
  FolderImages const images(part, classes);
  std::string content;
  for (std::int64_t i = 0; i < images.size(); ++i) {
    auto const key = std::to_string(i);
    content += tar_member(key + ".png", file_content(images.name(i)));
    content +=
        tar_member(key + ".cls", std::to_string(images.labels()[static_cast<std::size_t>(i)]));
  }
  write_file(path, content + test::tar_end);
}

/// And as one HDF5 file.
void write_array(std::filesystem::path const& path, std::filesystem::path const& part,
                 std::vector<std::string> const& classes) {
  FolderImages const images(part, classes);
  std::vector<std::uint8_t> pixels;
  ReadBuffer buffer;
  for (std::int64_t i = 0; i < images.size(); ++i) {
    images.read(
        i,
        [](ImageSize const& s) {
          return Region{0, 0, s.height, s.width};
        },
        {99, 99}, 3, buffer);
    pixels.insert(pixels.end(), buffer.pixels.values.begin(), buffer.pixels.values.end());
  }
  test::write_hdf5(path, {static_cast<hsize_t>(images.size()), edge, edge, 3}, pixels,
                   images.labels());
}

/// Data folders with the same images in all three layouts.
class Layouts {
 public:
  Layouts() {
    auto const from = folder_ / "folder";
    write_classes(from / "train", classes_, 16, edge);
    write_classes(from / "val", classes_, 4, edge, 48);
    for (auto const* name : {"tar", "hdf5"}) std::filesystem::create_directory(folder_ / name);
    copy_folder();
  }
  /// Puts another picture in the place of one of them, under its name.
  void replace_image() {
    FolderImages const images(folder_ / "folder" / "val", classes_);
    write_file(images.name(3), file_content(images.name(4)));
    copy_folder();
  }
  std::string operator/(std::string const& name) const { return (folder_ / name).string(); }

 private:
  /// Into the other layouts.
  void copy_folder() {
    auto const from = folder_ / "folder";
    for (auto const* part : {"train", "val"}) {
      write_shard(folder_ / "tar" / (std::string(part) + "-0.tar"), from / part, classes_);
      write_array(folder_ / "hdf5" / (std::string(part) + ".h5"), from / part, classes_);
    }
  }

  std::vector<std::string> const classes_{"a", "b", "c"};
  test::Scratch folder_;
};

DataConfig config_of(std::string const& path) {
  return {.dataset = "own", .path = path};
}

std::vector<at::Tensor> batches_of(Dataset const& dataset, InputFormat const& format,
                                   LoadPlan const& plan) {
  Loader loader(dataset, format, plan, nullptr);
  std::vector<at::Tensor> images;
  while (auto batch = loader.next()) images.push_back(batch->inputs);
  return images;
}

TEST(OwnData, AllLayoutsHoldTheSame) {
  Layouts const layouts;
  auto const folder = load_dataset(config_of(layouts / "folder"));
  EXPECT_EQ(folder.name, "own");
  EXPECT_EQ(folder.classes, 3);
  EXPECT_EQ(folder.train.size(), 48);
  EXPECT_EQ(folder.test.size(), 12);
  EXPECT_EQ(folder.fingerprint.size(), 16u);
  for (auto const* name : {"tar", "hdf5"}) {
    auto const other = load_dataset(config_of(layouts / name));
    EXPECT_EQ(other.classes, 3);
    EXPECT_TRUE(at::equal(other.train.labels, folder.train.labels));
    EXPECT_TRUE(at::equal(other.test.labels, folder.test.labels));
    for (std::int64_t const size : {12, 9, 20}) {
      auto const images = [&](Dataset const& of) {
        return BatchMaker(of, {.size = size, .threads = 2})
            .evaluation_batch(of.test, {0, 12})
            .inputs;
      };
      EXPECT_TRUE(at::equal(images(other), images(folder))) << name << " at " << size;
    }
  }
}

TEST(OwnData, OneOtherImageMakesAnotherFingerprint) {
  Layouts layouts;
  std::map<std::string, std::string> before;
  for (auto const* name : {"folder", "tar", "hdf5"})
    before[name] = load_dataset(config_of(layouts / name)).fingerprint;
  for (auto const& [name, fingerprint] : before)
    EXPECT_EQ(load_dataset(config_of(layouts / name)).fingerprint, fingerprint) << name;
  layouts.replace_image();
  for (auto const& [name, fingerprint] : before)
    EXPECT_NE(load_dataset(config_of(layouts / name)).fingerprint, fingerprint) << name;
}

TEST(OwnData, RanksAndThreadsShareTheSameBatches) {
  Layouts const layouts;
  for (auto const* name : {"folder", "tar", "hdf5"}) {
    auto const dataset = load_dataset(config_of(layouts / name));
    LoadPlan plan{.seed = 5, .global_batch = 12, .end_step = 8, .augment = Augmentation::standard};
    auto const whole = batches_of(dataset, {.size = 10}, plan);
    ASSERT_EQ(whole.size(), 8u);
    EXPECT_FALSE(at::equal(whole[0], whole[4])) << "another epoch, other parts of the images";
    for (int const ranks : {1, 2, 4})
      for (int rank = 0; rank < ranks; ++rank) {
        plan.slice = {rank, ranks};
        auto const part = batches_of(dataset, {.size = 10, .threads = 1 + rank}, plan);
        for (std::size_t step = 0; step < whole.size(); ++step)
          EXPECT_TRUE(at::equal(part[step], whole[step].narrow(0, rank * 12 / ranks, 12 / ranks)))
              << name << ", rank " << rank << " of " << ranks;
      }
  }
}

TEST(OwnData, SubsetAndHoldoutAreFairSamples) {
  Layouts const layouts;
  auto config = config_of(layouts / "folder");
  config.subset = 30;
  config.holdout = 12;
  auto const part = load_dataset(config);
  EXPECT_EQ(part.train.size(), 18);
  EXPECT_EQ(part.test.size(), 12);
  auto const whole = load_dataset(config_of(layouts / "folder"));
  EXPECT_TRUE(at::equal(part.test.labels, whole.train.labels.narrow(0, 18, 12)));
  EXPECT_EQ(part.test.labels.bincount().numel(), 3) << "of all classes";
  auto const images = [](Dataset const& of, SampleSet const& set, IndexRange const& range) {
    return BatchMaker(of, {.size = 12}).evaluation_batch(set, range).inputs;
  };
  EXPECT_TRUE(at::equal(images(part, part.test, {0, 12}), images(whole, whole.train, {18, 30})));
  EXPECT_NE(part.fingerprint, whole.fingerprint);
  config.path = layouts / "hdf5";
  auto const of_runs = load_dataset(config);
  EXPECT_EQ(of_runs.train.runs().parts.back().end, 18);
}

TEST(OwnData, NormalisesAsConfiguredElseAsImageNet) {
  Layouts const layouts;
  auto config = config_of(layouts / "folder");
  auto const usual = load_dataset(config);
  config.mean = {0.5, 0.5, 0.5};
  config.stddev = {0.25, 0.25, 0.25};
  auto const own = load_dataset(config);
  auto const image = [](Dataset const& of) {
    return BatchMaker(of, {.size = 12}).evaluation_batch(of.test, {0, 1}).inputs;
  };
  auto const pixels = image(own) * 0.25 + 0.5;
  auto const mean = at::tensor({0.485, 0.456, 0.406}, at::kFloat).view({1, 3, 1, 1});
  auto const stddev = at::tensor({0.229, 0.224, 0.225}, at::kFloat).view({1, 3, 1, 1});
  EXPECT_TRUE(at::allclose(image(usual), (pixels - mean) / stddev, 0, 1e-5));
}

TEST(OwnData, SizesAreKnownWithoutReadingImages) {
  Layouts const layouts;
  std::filesystem::resize_file(FolderImages(layouts / "folder/train", {"a", "b", "c"}).name(0), 0);
  auto const size = whole_size(config_of(layouts / "folder"));
  EXPECT_EQ(size.train, 48);
  EXPECT_EQ(size.test, 12);
  EXPECT_EQ(size.classes, 3);
  EXPECT_EQ(channels_of(config_of(layouts / "folder")), 0);
  EXPECT_EQ(channels_of(config_of(layouts / "tar")), 0);
  EXPECT_EQ(channels_of(config_of(layouts / "hdf5")), 3);
}

TEST(OwnData, TheErrorOfADamagedImageReachesTheTrainer) {
  Layouts const layouts;
  auto const dataset = load_dataset(config_of(layouts / "folder"));
  auto const* store = dynamic_cast<FolderImages const*>(dataset.train.store.get());
  ASSERT_NE(store, nullptr);
  auto const path = store->name(3);
  write_file(path, "no image");
  expect_bad_data(
      [&] { batches_of(dataset, {.size = 10, .threads = 2}, {.global_batch = 12, .end_step = 4}); },
      path);
}

TEST(OwnData, SaysWhatADataFolderHolds) {
  test::Scratch folder;
  auto const open = [&] { open_own_data(config_of(folder.path().string())); };
  expect_bad_data([] { open_own_data(config_of("/none")); }, "data.path: /none is missing");
  expect_bad_data(open, "holds no train/, train*.tar or train*.h5");
  write_classes(folder / "train", {"a", "b"}, 2, edge);
  try {
    open();
    ADD_FAILURE() << "accepted without a part to evaluate";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("let data.holdout keep some"), std::string::npos);
  }
  write_array(folder / "val.h5", folder / "train", {"a", "b"});
  expect_bad_data(open, "val.h5 is not of the kind of the training images");
  std::filesystem::remove(folder / "val.h5");
  write_classes(folder / "val", {"b"}, 2, edge);
  auto const dataset = open_own_data(config_of(folder.path().string()));
  ASSERT_EQ(dataset.remarks.size(), 1u);
  EXPECT_NE(dataset.remarks.front().find("has no images of 1 of 2 classes, such as a"),
            std::string::npos);
  write_array(folder / "train.h5", folder / "train", {"a", "b"});
  expect_bad_data(open, "holds train and train.h5");
}

TEST(OwnData, RefusesLabelsThatNoTrainingImageHas) {
  test::Scratch folder;
  auto const pixels = test::some_pixels(2 * 4 * 4 * 3);
  test::write_hdf5(folder / "train.h5", {2, 4, 4, 3}, pixels, {0, 1}, {.layout = "NHWC"});
  test::write_hdf5(folder / "val.h5", {2, 4, 4, 3}, pixels, {1, 2}, {.layout = "NHWC"});
  auto const open = [&] { open_own_data(config_of(folder.path().string())); };
  expect_bad_data(open, "val.h5: images[1]");
  expect_bad_data(open, "no image to train on has label 2");
  test::write_hdf5(folder / "train.h5", {2, 4, 4, 3}, pixels, {1, 2}, {.layout = "NHWC"});
  test::write_hdf5(folder / "val.h5", {2, 4, 4, 3}, pixels, {1, 0}, {.layout = "NHWC"});
  expect_bad_data(open, "no image to train on has label 0");
  test::write_hdf5(folder / "val.h5", {2, 4, 4, 3}, pixels, {1, 1}, {.layout = "NHWC"});
  EXPECT_EQ(open_own_data(config_of(folder.path().string())).remarks.size(), 1u)
      << "labels count from 0";
  test::write_hdf5(folder / "train.h5", {2, 4, 4, 3}, pixels, {0, 1}, {.layout = "NHWC"});
  test::write_hdf5(folder / "val.h5", {2, 4, 4, 1}, test::some_pixels(32), {1, 1});
  expect_bad_data(open, "has images of 1 channel(s)");
}

TEST(OwnData, RefusesHeldOutLabelsThatNoTrainingImageHas) {
  test::Scratch folder;
  test::write_hdf5(folder / "train.h5", {4, 4, 4, 3}, test::some_pixels(4 * 4 * 4 * 3),
                   {0, 0, 1, 1}, {.layout = "NHWC"});
  auto config = config_of(folder.path().string());
  config.holdout = 2;
  expect_bad_data([&] { load_dataset(config); }, "has label 1");
  expect_bad_data([&] { load_dataset(config); }, "put the images into random order");
  config.holdout = 1;
  EXPECT_EQ(load_dataset(config).test.size(), 1);
}

}  // namespace
}  // namespace stratagem
