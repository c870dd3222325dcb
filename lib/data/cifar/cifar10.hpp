#pragma once

#include <filesystem>

#include "data/dataset.hpp"

namespace stratagem {

/// CIFAR-10 (Krizhevsky, "Learning multiple layers of features from tiny images", 2009) from the
/// six files of its binary version: records of one label and 32x32 pixels in three planes. All
/// training files must have the same number of images; fewer images than published are allowed.
Dataset read_cifar10(std::filesystem::path const& folder);

}  // namespace stratagem
