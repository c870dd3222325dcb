#include "data/dataset.hpp"

#include <ATen/ATen.h>

#include "data/files.hpp"

namespace stratagem {
namespace {

using namespace test;

TEST(Dataset, EveryCatalogueEntryIsFoundByName) {
  ASSERT_EQ(dataset_catalogue().size(), 5u);
  for (auto const& entry : dataset_catalogue()) EXPECT_EQ(&find_dataset(entry.name), &entry);
  try {
    find_dataset("cifar-10");
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("did you mean \"cifar10\"?"), std::string::npos)
        << error.what();
  }
}

TEST(Dataset, SaysWhichFolderIsMissing) {
  Scratch folder;
  auto load = [](std::string const& name, std::string const& root) {
    return [=] { load_dataset({.dataset = name, .root = root}); };
  };
  expect_bad_data(load("mnist", ""), "data.root is empty");
  expect_bad_data(load("mnist", "/nowhere"), "the data folder /nowhere is missing");
  expect_bad_data(load("cifar10", folder.path()),
                  (folder.path() / "cifar-10-batches-bin").string() + " is missing");
  expect_bad_data(load("cifar10", folder.path()), "STRATAGEM_DATA");
  std::filesystem::create_directory(folder.path() / "mnist");
  expect_bad_data(load("mnist", folder.path()), "train-images-idx3-ubyte.gz");
}

TEST(Dataset, SubsetKeepsTheFirstTrainingImages) {
  auto const whole = load_dataset({.dataset = "synthetic-digits"});
  auto const part = load_dataset({.dataset = "synthetic-digits", .subset = 96});
  EXPECT_EQ(part.train.size(), 96);
  EXPECT_EQ(part.test.size(), whole.test.size());
  EXPECT_TRUE(at::equal(part.train.images, whole.train.images.narrow(0, 0, 96)));
  EXPECT_TRUE(at::equal(part.train.labels, whole.train.labels.narrow(0, 0, 96)));
  EXPECT_NE(part.fingerprint, whole.fingerprint);
  try {
    load_dataset({.dataset = "synthetic-digits", .subset = 8001});
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("there are 8000"), std::string::npos) << error.what();
  }
}

TEST(Dataset, HeldOutImagesAreTheLastAndReplaceTheTestImages) {
  auto const whole = load_dataset({.dataset = "synthetic-digits"});
  for (std::int64_t const subset : {0, 96}) {
    auto const images = subset > 0 ? subset : whole.train.size();
    auto const part =
        load_dataset({.dataset = "synthetic-digits", .subset = subset, .holdout = 16});
    ASSERT_EQ(part.train.size(), images - 16);
    ASSERT_EQ(part.test.size(), 16);
    auto const expect_from = [&](std::int64_t first, SampleSet const& set) {
      auto const of_whole = [&](auto const& all) { return all.narrow(0, first, set.size()); };
      EXPECT_TRUE(at::equal(set.images, of_whole(whole.train.images)));
      EXPECT_TRUE(at::equal(set.labels, of_whole(whole.train.labels)));
    };
    expect_from(0, part.train);
    expect_from(images - 16, part.test);
    EXPECT_NE(part.fingerprint,
              load_dataset({.dataset = "synthetic-digits", .subset = subset}).fingerprint);
    EXPECT_NE(
        part.fingerprint,
        load_dataset({.dataset = "synthetic-digits", .subset = subset, .holdout = 17}).fingerprint);
  }
}

TEST(Dataset, SomeImagesMustBeLeftToTrainOn) {
  DatasetSize const whole{.train = 100, .test = 30};
  EXPECT_EQ(used_part({.holdout = 99}, whole).train, 1);
  EXPECT_EQ(used_part({.holdout = 99}, whole).test, 99);
  EXPECT_EQ(used_part({.subset = 40}, whole).test, 30);
  for (auto const& config : {DataConfig{.holdout = 100}, DataConfig{.subset = 40, .holdout = 40}}) {
    try {
      used_part(config, whole);
      FAIL() << "accepted";
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("none are left"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace stratagem
