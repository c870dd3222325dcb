#pragma once

#include <filesystem>

#include "data/dataset.hpp"

namespace stratagem {

/// CIFAR-10 (Krizhevsky, "Learning multiple layers of features from tiny images", 2009) from the
/// six files of its binary version: records of one label and 32x32 pixels in three planes. The
/// training files hold equally many; fewer than published is legal.
Dataset read_cifar10(std::filesystem::path const& folder);

}  // namespace stratagem
