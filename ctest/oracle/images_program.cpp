#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>

#include <ATen/ATen.h>

#include "data/batch.hpp"

using namespace stratagem;

/// images_program FOLDER SIZE EPOCH FILE: all training images of a data folder as a model's input
/// of SIZE pixels, p/255 as fp32 [n, 3, SIZE, SIZE], written to FILE; augmented as in EPOCH, or not
/// if that is negative. Prints a line each: name, top, left, height and width of the part that was
/// taken, and 1 if it is mirrored.
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  auto const size = std::atoll(argv[2]), epoch = std::atoll(argv[3]);
  auto const dataset = load_dataset(
      {.dataset = "own", .path = argv[1], .mean = {0, 0, 0}, .stddev = {1, 1, 1}, .holdout = 1});
  auto const& train = dataset.train;
  Augmenter const augmenter =
      epoch < 0 ? Augmenter() : Augmenter(Augmentation::standard, 1, dataset.may_flip);
  BatchMaker const maker(dataset, {.size = size, .threads = 2});
  std::vector<std::int64_t> images(static_cast<std::size_t>(train.size()));
  std::iota(images.begin(), images.end(), 0);
  auto const batch =
      maker.gather(train, images, augmenter, std::max<std::int64_t>(epoch, 0)).inputs;
  std::ofstream(argv[4], std::ios::binary)
      .write(reinterpret_cast<char const*>(batch.const_data_ptr<float>()),
             static_cast<std::streamsize>(batch.nbytes()));
  ReadBuffer buffer;
  for (auto const image : images) {
    Crop crop;
    auto const choose = [&](ImageSize const& of) {
      crop = augmenter.crop(std::max<std::int64_t>(epoch, 0), image, of, size);
      return crop.region;
    };
    train.store->read(image, choose, {size, size}, 3, buffer);
    auto const& region = crop.region;
    std::cout << train.store->name(image) << '\t' << region.top << '\t' << region.left << '\t'
              << region.height << '\t' << region.width << '\t' << (crop.flip ? 1 : 0) << '\n';
  }
}
