#include "data/dataset.hpp"

#include <ATen/ATen.h>

#include "data/files.hpp"

namespace stratagem {
namespace {

using namespace test;

TEST(Dataset, EveryCatalogueEntryIsFoundByName) {
  ASSERT_EQ(dataset_catalogue().size(), 4u);
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

}  // namespace
}  // namespace stratagem
